"""Simple-DER (Li et al. 2021, "Preserving Earlier Knowledge in Continual Learning with the Help of All Previous Feature
Extractors"): one network a step, all kept, each pruned after its step.

No public code is known; this follows the paper's description. All networks' features go into one output, which is
trained with a distillation from the previous one and then on balanced exemplars. Where the description leaves it open:
a network is pruned inside its residual blocks to a share of its channels, those that are read with the largest weights,
before the balanced training, in which it learns too. A new network starts from the learner's first weights.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field
from torch import Tensor, nn

from siesta.methods.batch.channels import fit_shapes, inner_channels
from siesta.methods.batch.distillation import distilled_cross_entropy, old_logits_of
from siesta.methods.batch.expanding import trained_parameters
from siesta.methods.batch.learner import BatchLearner
from siesta.methods.batch.network import ExpandingNetwork
from siesta.methods.batch.settings import BatchSettings, Share, Shares
from siesta.methods.batch.step import Step
from siesta.sleep.batch import Batch
from siesta.sleep.objective import Loss
from siesta.sleep.schedule import falling_at

__all__ = ["SimpleDER", "SimpleDERSettings"]


class SimpleDERSettings(BatchSettings):
    """Values of DER's authors for CIFAR-100, as the paper's are not published with code.

    Attributes:
        temperature: Of the distillation.
        kept: Share of the channels inside blocks that is kept of each network.
        tuning_epochs: Epochs on balanced exemplars after the pruning; in the first step on all images.
        tuning_lr: Maximum learning rate of that; it falls to a tenth halfway.
    """

    epochs: int = Field(default=140, ge=1)
    drops: Shares = (80 / 170, 120 / 170, 150 / 170)
    temperature: float = Field(default=2.0, gt=0)
    kept: Share = 0.25
    tuning_epochs: int = Field(default=20, ge=1)
    tuning_lr: float = Field(default=0.01, gt=0)

    def further_updates(self, step: int, samples: int, kept: int) -> int:
        """Return the updates on balanced exemplars."""
        return self.tuning_epochs * (min(2 * kept, samples) if step else min(self.exemplars, samples))


class SimpleDER(BatchLearner[SimpleDERSettings]):
    """Adds a network for each step and prunes it."""

    Settings: ClassVar[type[BatchSettings]] = SimpleDERSettings
    network: ExpandingNetwork

    def make_network(self) -> ExpandingNetwork:
        """Return a network whose branches are whole backbones, each starting from the same weights."""
        self._start = self.body()
        list(inner_channels(self._start))  # refuses networks that cannot be pruned
        return ExpandingNetwork(nn.Identity(), self.body(), self.features, self._start)

    def load_network(self, tensors: dict[str, Tensor]) -> None:
        """Load networks that have been pruned."""
        fit_shapes(self.network, tensors)
        self.network.load_state_dict(tensors)

    def learn_step(self, step: Step, previous: nn.Module | None) -> None:
        """Train the newest network with a distillation, prune it, and train on balanced exemplars."""
        settings = self.settings
        parameters = trained_parameters(self.network, self.network.output)
        others = [previous, self._start]
        self.train_stage(self.training(step, loss=self._loss(previous), parameters=parameters, others=others))
        if not step.new:
            return
        for inner in inner_channels(self.network.top.newest()):
            count = max(round(settings.kept * len(inner)), 1)
            inner.keep(inner.importance().topk(count).indices.sort().values)
        tuning = {
            "ids": self.balanced(step),
            "epochs": settings.tuning_epochs,
            "lr": settings.tuning_lr,
            "schedule": falling_at(0.5),
            "loss": self._loss(previous),
            "parameters": trained_parameters(self.network, self.network.output),
            "others": others,
        }
        self.train_stage(self.training(step, **tuning))

    def _loss(self, previous: nn.Module | None) -> Loss:
        def loss(batch: Batch, _features: Tensor, logits: Tensor) -> Tensor:
            old_logits = old_logits_of(previous, batch.latents)
            return distilled_cross_entropy(logits, batch.rows, old_logits, self.settings.temperature)

        return loss
