"""The origin of the feature space, from which cosines are measured."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Centre"]


class Centre(nn.Module):
    """Subtract a fixed vector, the mean z of base images.

    After a ReLU, all features are non-negative and every cosine between them is high. Relative to their mean they
    spread out, so that class means separate the classes. The initial value, zero, changes nothing.
    """

    centre: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(features))

    def forward(self, x: Tensor) -> Tensor:
        """(B, D) -> (B, D)."""
        return x - self.centre
