"""The origin of the feature space: where cosines are measured from."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Centre"]


class Centre(nn.Module):
    """Subtracts a fixed vector, the mean z of base pictures: (B, D) -> (B, D).

    After a ReLU all features lie in one corner of the space, and every cosine is high. Seen from their mean they
    spread out, so that a plain class mean tells classes apart. Zero, its start value, leaves
    them as they are.
    """

    centre: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(features))

    def forward(self, x: Tensor) -> Tensor:
        """(B, D) -> (B, D)."""
        return x - self.centre
