"""Class means that follow the top while it is trained."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from siesta.head import Head
from siesta.sleep.batch import Batch

__all__ = ["RunningClassMeans"]

_FADE = 0.03  # decay of earlier contributions per step, at the maximum learning rate


class RunningClassMeans:
    """Mean z of each class under the top as it changes, from the z that the training steps compute anyway.

    The means start from what the head knows: a class's vector, weighted by its number of samples. Every step fades
    what is known by how far it may have moved the top, and adds the rehearsed z. So a short sleep corrects the means
    and a long one replaces them. The z of a mixture counts only where one part makes up 95 % or more of it.

    Attributes:
        totals: Weighted sum of z of each class, (K, D).
    """

    def __init__(self, head: Head, device: torch.device) -> None:
        totals = head.total_counts()[:, None].astype(np.float32) * head.weights()
        self.totals = torch.tensor(totals, device=device)

    def add(self, features: Tensor, batch: Batch, lr_share: float) -> None:
        """Add z (B, D) of a batch, computed before a step at `lr_share` of the maximum learning rate."""
        rows = batch.dominant_rows()
        if rows is not None:
            self.totals.index_add_(0, rows, features)
        self.totals.mul_(1 - _FADE * lr_share)

    def blend(self, vectors: Tensor, mean_share: float) -> Tensor:
        """Return directions (K, D) between trained vectors (K, D) and the means."""
        return (1 - mean_share) * F.normalize(vectors) + mean_share * F.normalize(self.totals)
