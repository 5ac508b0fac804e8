"""MEMO (Zhou et al. 2023, "A Model or 603 Exemplars"): only the deep layers of a network are added each step.

The layers after the last halving of the feature maps are copied for each step; those below are shared and go on
learning. New branches learn with DER's auxiliary output, and the output is aligned as in WA, as in the authors' code.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.methods.batch.expanding import AuxiliaryOutput, expanding_loss, trained_parameters
from siesta.methods.batch.heads import seeded
from siesta.methods.batch.learner import BatchLearner
from siesta.methods.batch.network import ExpandingNetwork, stage_ends
from siesta.methods.batch.settings import BatchSettings, Shares
from siesta.methods.batch.step import Step
from siesta.rng import Purpose, derived_seed
from siesta.sleep.batch import Batch

__all__ = ["MEMO", "MEMOSettings"]


class MEMOSettings(BatchSettings):
    """The authors' values for CIFAR-100.

    Attributes:
        auxiliary: Weight of the auxiliary loss.
    """

    first_epochs: int | None = Field(default=200, ge=1)
    drops: Shares = (80 / 170, 120 / 170, 150 / 170)
    first_drops: Shares | None = (0.3, 0.6, 0.85)
    auxiliary: float = Field(default=1.0, ge=0)


class MEMO(BatchLearner[MEMOSettings]):
    """Shares the lower layers and adds a copy of the deep ones for each step."""

    Settings: ClassVar[type[BatchSettings]] = MEMOSettings
    distils: ClassVar[bool] = False
    network: ExpandingNetwork

    def make_network(self) -> ExpandingNetwork:
        """Return the backbone, split where its feature maps are halved for the last time."""
        body = self.body()
        split = stage_ends(body, self.workspace.pipeline.image_size)[-2] + 1
        return ExpandingNetwork(body[:split], body[split:], self.features)

    def learn_step(self, step: Step, _previous: nn.Module | None) -> None:
        """Train trunk, newest branch and output with the auxiliary output, then align the output."""
        with seeded(derived_seed(self.seed, Purpose.METHOD_GROWTH, step.classes)):
            output = AuxiliaryOutput(self.network.output, self.features, step.new + 1)
        grows = step.number > 0 and step.new > 0

        def loss(batch: Batch, features: Tensor, logits: Tensor) -> Tensor:
            if not grows:
                return F.cross_entropy(logits, batch.rows)
            return expanding_loss(logits, output.newest(features), batch.rows, step.known, self.settings.auxiliary)

        trained = output if grows else self.network.output
        parameters = trained_parameters(self.network, trained)
        self.train_stage(self.training(step, loss=loss, output=trained, parameters=parameters))
        if grows:
            self.network.output.align(step.known)
