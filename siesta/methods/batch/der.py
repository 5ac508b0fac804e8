"""DER (Yan et al. 2021, "Dynamically Expandable Representation"), without pruning: one network a step, all kept.

(Dark Experience Replay is another method of that name.) A new network starts as a copy of the last one and learns with
an auxiliary output, in which all old classes are one. The output is then trained anew on balanced exemplars, at a
temperature. `classifier_epochs = 0` aligns its rows as WA does instead, as public re-implementations do.

The paper's warm-up of the learning rate over ten epochs is left out; its `der_pruned` is another method here.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.methods.batch.expanding import AuxiliaryOutput, expanding_loss, trained_parameters, tune_output
from siesta.methods.batch.heads import seeded
from siesta.methods.batch.learner import BatchLearner
from siesta.methods.batch.network import ExpandingNetwork
from siesta.methods.batch.settings import BatchSettings, Shares
from siesta.methods.batch.stage import Stage
from siesta.methods.batch.step import Step
from siesta.rng import Purpose, derived_seed
from siesta.sleep.batch import Batch

__all__ = ["DER", "DERSettings"]


class DERSettings(BatchSettings):
    """The authors' values for CIFAR-100; on ImageNet the temperature is 1.

    Attributes:
        auxiliary: Weight of the auxiliary loss.
        classifier_epochs: Epochs in which the output is trained anew, on balanced exemplars; 0 aligns it instead.
        classifier_lr: Maximum learning rate of that; it falls to a tenth halfway.
        temperature: By which logits are divided there.
    """

    first_epochs: int | None = Field(default=200, ge=1)
    drops: Shares = (80 / 170, 120 / 170, 150 / 170)
    first_drops: Shares | None = (0.3, 0.6, 0.85)
    auxiliary: float = Field(default=1.0, ge=0)
    classifier_epochs: int = Field(default=30, ge=0)
    classifier_lr: float = Field(default=0.1, gt=0)
    temperature: float = Field(default=5.0, gt=0)

    def further_updates(self, step: int, samples: int, kept: int) -> int:
        """Return the updates in which the output is trained anew."""
        return self.classifier_epochs * min(2 * kept, samples) if step else 0


class DER(BatchLearner[DERSettings]):
    """Adds a network for the new classes and trains one output over the features of all networks."""

    Settings: ClassVar[type[BatchSettings]] = DERSettings
    distils: ClassVar[bool] = False
    network: ExpandingNetwork

    def make_network(self) -> ExpandingNetwork:
        """Return a network whose branches are whole backbones."""
        return ExpandingNetwork(nn.Identity(), self.body(), self.features)

    def learn_step(self, step: Step, _previous: nn.Module | None) -> None:
        """Train the newest network with the auxiliary output, then the output alone."""
        if step.number == 0 or not step.new:
            self.train_stage(self._plain(step))
            return
        with seeded(derived_seed(self.seed, Purpose.METHOD_GROWTH, step.classes)):
            output = AuxiliaryOutput(self.network.output, self.features, step.new + 1)

        def loss(batch: Batch, features: Tensor, logits: Tensor) -> Tensor:
            return expanding_loss(logits, output.newest(features), batch.rows, step.known, self.settings.auxiliary)

        parameters = trained_parameters(self.network, output)
        self.train_stage(self.training(step, loss=loss, output=output, parameters=parameters))
        if self.settings.classifier_epochs:
            tune_output(
                self, step, self.settings.classifier_epochs, self.settings.classifier_lr, self.settings.temperature
            )
        else:
            self.network.output.align(step.known)

    def _plain(self, step: Step) -> Stage:
        """Return the stage of a step whose network has no auxiliary output."""
        parameters = trained_parameters(self.network, self.network.output)
        return self.training(step, loss=_cross_entropy, parameters=parameters)


def _cross_entropy(batch: Batch, _features: Tensor, logits: Tensor) -> Tensor:
    return F.cross_entropy(logits, batch.rows)
