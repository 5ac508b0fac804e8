"""WA (Zhao et al. 2020, "Maintaining Discrimination and Fairness in Class Incremental Learning"): distillation, then
new rows of the output get the mean length of old ones.

As in public code, the rows have a bias, and weights are not clipped to be non-negative.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field
from torch import Tensor, nn

from siesta.methods.batch.distillation import distilled_cross_entropy, old_logits_of
from siesta.methods.batch.heads import LinearHead
from siesta.methods.batch.learner import BatchLearner
from siesta.methods.batch.settings import BatchSettings, Shares
from siesta.methods.batch.step import Step
from siesta.sleep.batch import Batch

__all__ = ["WA", "WASettings"]


class WASettings(BatchSettings):
    """Public code's values for CIFAR-100.

    Attributes:
        temperature: Of the distillation.
    """

    first_epochs: int | None = Field(default=200, ge=1)
    drops: Shares = (60 / 170, 100 / 170, 140 / 170)
    first_drops: Shares | None = (0.3, 0.6, 0.85)
    temperature: float = Field(default=2.0, gt=0)


class WA(BatchLearner[WASettings]):
    """Trains with distillation and aligns the output."""

    Settings: ClassVar[type[BatchSettings]] = WASettings

    def learn_step(self, step: Step, previous: nn.Module | None) -> None:
        """Train on new images and exemplars, then align the rows of new classes."""

        def loss(batch: Batch, _features: Tensor, logits: Tensor) -> Tensor:
            return distilled_cross_entropy(
                logits, batch.rows, old_logits_of(previous, batch.latents), self.settings.temperature
            )

        self.train_stage(self.training(step, loss=loss, others=[previous]))
        if step.known and step.new:
            assert isinstance(self.network.output, LinearHead)
            self.network.output.align(step.known)
