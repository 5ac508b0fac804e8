"""Losses that keep a network's outputs close to those of another one."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["distilled_cross_entropy", "old_logits_of", "soft_cross_entropy"]


@torch.no_grad()
def old_logits_of(previous: nn.Module | None, images: Tensor) -> Tensor | None:
    """Return what the previous network says of images (B, 3, S, S), (B, K'); None where there is none."""
    return None if previous is None else previous(images)


def soft_cross_entropy(logits: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """Return the mean cross-entropy of the softmax of logits (B, K) with that of targets (B, K), at a temperature.

    This is the distillation of Hinton et al. (2015) without the factor T^2, as iCaRL's, WA's and BiC's public codes
    have it.
    """
    wanted = (targets / temperature).softmax(dim=1)
    return -(wanted * F.log_softmax(logits / temperature, dim=1)).sum(dim=1).mean()


def distilled_cross_entropy(logits: Tensor, rows: Tensor, old_logits: Tensor | None, temperature: float) -> Tensor:
    """Return the cross-entropy and the distillation, weighted by the shares of new and old classes.

    It is the loss of BiC (equation 4) and of WA (equation 3).

    Args:
        logits: (B, K).
        rows: (B,).
        old_logits: Of the previous network, (B, K'); None in the first step.
        temperature: Of the distillation.
    """
    loss = F.cross_entropy(logits, rows)
    if old_logits is None:
        return loss
    known = old_logits.shape[1]
    share = known / logits.shape[1]
    return (1 - share) * loss + share * soft_cross_entropy(logits[:, :known], old_logits, temperature)
