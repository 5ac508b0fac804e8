"""End-to-End (Castro et al. 2018): a distillation for each earlier step's classes, then balanced fine-tuning.

In the fine-tuning the step's own classes are distilled too, from the network as it was before it. As in public code,
images are changed at random each time they are seen instead of in twelve fixed ways, and no noise is added to
gradients; exemplars are chosen by herding.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.methods.batch.distillation import old_logits_of, soft_cross_entropy
from siesta.methods.batch.learner import BatchLearner
from siesta.methods.batch.network import frozen_copy
from siesta.methods.batch.settings import BatchSettings, Shares
from siesta.methods.batch.step import Step
from siesta.sleep.batch import Batch
from siesta.sleep.objective import Loss
from siesta.sleep.schedule import falling_at

__all__ = ["EndToEnd", "EndToEndSettings", "end_to_end_loss"]


def end_to_end_loss(
    logits: Tensor, rows: Tensor, old_logits: Tensor | None, sizes: list[int], temperature: float
) -> Tensor:
    """Return the cross-entropy plus the mean distillation over the classes of each earlier step (equation 3).

    Args:
        logits: (B, K).
        rows: (B,).
        old_logits: Of the previous network, (B, K'); None in the first step.
        sizes: Classes of each step that is distilled, K' in all.
        temperature: Of the distillation.
    """
    loss = F.cross_entropy(logits, rows)
    if old_logits is None:
        return loss
    pairs = zip(torch.split(logits[:, : sum(sizes)], sizes, 1), torch.split(old_logits, sizes, 1), strict=True)
    return loss + torch.stack([soft_cross_entropy(new, old, temperature) for new, old in pairs]).mean()


class EndToEndSettings(BatchSettings):
    """Public code's values for CIFAR-100.

    Attributes:
        temperature: Of the distillation.
        tuning_epochs: Epochs on balanced exemplars.
        tuning_lr: Maximum learning rate of that; it falls to a tenth after a quarter and after half of it.
    """

    epochs: int = Field(default=60, ge=1)
    first_epochs: int | None = Field(default=90, ge=1)
    weight_decay: float = Field(default=1e-4, ge=0, le=1)
    first_weight_decay: float | None = Field(default=None, ge=0, le=1)
    drops: Shares = (40 / 60, 50 / 60)
    first_drops: Shares | None = (50 / 90, 60 / 90)
    temperature: float = Field(default=2.0, gt=0)
    tuning_epochs: int = Field(default=40, ge=1)
    tuning_lr: float = Field(default=0.01, gt=0)

    def further_updates(self, step: int, samples: int, kept: int) -> int:
        """Return the updates on balanced exemplars."""
        return self.tuning_epochs * min(2 * kept, samples) if step else 0


class EndToEnd(BatchLearner[EndToEndSettings]):
    """Trains with a distillation for each step, then on balanced exemplars."""

    Settings: ClassVar[type[BatchSettings]] = EndToEndSettings

    def learn_step(self, step: Step, previous: nn.Module | None) -> None:
        """Train on all images, then on as many of each class."""
        sizes = self.step_sizes
        old_sizes = sizes[:-1] if step.new else sizes
        self.train_stage(self.training(step, loss=self._loss(previous, old_sizes), others=[previous]))
        if previous is not None:
            settings = self.settings
            teacher = frozen_copy(self.network)
            tuning = {
                "ids": self.balanced(step),
                "epochs": settings.tuning_epochs,
                "lr": settings.tuning_lr,
                "schedule": falling_at(0.25, 0.5),
                "loss": self._loss(teacher, sizes),
                "others": [teacher],
            }
            self.train_stage(self.training(step, **tuning))

    def _loss(self, previous: nn.Module | None, sizes: list[int]) -> Loss:
        def loss(batch: Batch, _features: Tensor, logits: Tensor) -> Tensor:
            old_logits = old_logits_of(previous, batch.latents)
            return end_to_end_loss(logits, batch.rows, old_logits, sizes, self.settings.temperature)

        return loss
