"""iCaRL (Rebuffi et al. 2017): distillation, herding, and classification by the nearest mean of exemplars.

It departs from the paper where public code does: instead of a sigmoid for each class, the loss is a softmax
cross-entropy and a distillation at a temperature (`loss = "softmax"`), which trains with usual learning rates;
"sigmoid" is the paper's. The mean of a class is that of its exemplars' features of length one, at length one.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.methods.batch.distillation import old_logits_of, soft_cross_entropy
from siesta.methods.batch.exemplars import unit_rows
from siesta.methods.batch.learner import BatchLearner
from siesta.methods.batch.settings import BatchSettings, Shares
from siesta.methods.batch.step import Step
from siesta.sleep.batch import Batch

__all__ = ["ICaRL", "ICaRLSettings", "nearest_mean_scores", "sigmoid_loss", "softmax_loss"]


def softmax_loss(logits: Tensor, rows: Tensor, old_logits: Tensor | None, temperature: float) -> Tensor:
    """Return the cross-entropy plus, for old classes, the distillation from the previous network.

    Args:
        logits: (B, K).
        rows: (B,).
        old_logits: Of the previous network, (B, K'); None in the first step.
        temperature: Of the distillation.
    """
    loss = F.cross_entropy(logits, rows)
    if old_logits is not None:
        loss = loss + soft_cross_entropy(logits[:, : old_logits.shape[1]], old_logits, temperature)
    return loss


def sigmoid_loss(logits: Tensor, rows: Tensor, old_logits: Tensor | None) -> Tensor:
    """Return the paper's loss: a binary cross-entropy for each class, summed, old outputs being the target of old ones.

    Args:
        logits: (B, K).
        rows: (B,).
        old_logits: Of the previous network, (B, K'); None in the first step.
    """
    targets = F.one_hot(rows, logits.shape[1]).to(logits.dtype)
    if old_logits is not None:
        targets[:, : old_logits.shape[1]] = old_logits.sigmoid()
    return F.binary_cross_entropy_with_logits(logits, targets, reduction="sum") / len(logits)


def nearest_mean_scores(features: Tensor, means: Tensor) -> Tensor:
    """Return the negative squared distances of features (B, D), at length one, from class means (K, D): (B, K)."""
    return -(torch.cdist(F.normalize(features), means) ** 2)


class ICaRLSettings(BatchSettings):
    """Public code's values for CIFAR-100.

    Attributes:
        loss: "softmax" or the paper's "sigmoid".
        temperature: Of the distillation; "softmax" only.
    """

    first_epochs: int | None = Field(default=200, ge=1)
    drops: Shares = (80 / 170, 120 / 170)
    first_drops: Shares | None = (0.3, 0.6, 0.85)
    loss: Literal["softmax", "sigmoid"] = "softmax"
    temperature: float = Field(default=2.0, gt=0)


class ICaRL(BatchLearner[ICaRLSettings]):
    """Trains with distillation and predicts the class whose exemplars' mean is nearest."""

    Settings: ClassVar[type[BatchSettings]] = ICaRLSettings

    def learn_step(self, step: Step, previous: nn.Module | None) -> None:
        """Train on new images and exemplars with the previous network as a teacher."""

        def loss(batch: Batch, _features: Tensor, logits: Tensor) -> Tensor:
            old_logits = old_logits_of(previous, batch.latents)
            if self.settings.loss == "sigmoid":
                return sigmoid_loss(logits, batch.rows, old_logits)
            return softmax_loss(logits, batch.rows, old_logits, self.settings.temperature)

        self.train_stage(self.training(step, loss=loss, others=[previous]))

    def after_step(self, step: Step) -> None:
        """Compute the mean of each class's exemplars under the new network."""
        means = [unit_rows(self.embed(self.exemplars.of(row))).mean(axis=0) for row in range(step.classes)]
        self.extra["means"] = F.normalize(torch.stack([torch.from_numpy(mean) for mean in means]))

    def scores(self, images: Tensor) -> Tensor:
        """Return the closeness to each class mean; logits before there are any means."""
        if "means" not in self.extra:
            return super().scores(images)
        return nearest_mean_scores(self.network.top(images), self.extra["means"])
