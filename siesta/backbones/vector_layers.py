"""Layers of the tops over vectors."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["EPSILON", "MeanOfVectors", "ResidualBlock", "UnitScale"]

EPSILON = 1e-12
"""Added to the mean square of a vector, so that a vector of zeros stays one."""


class UnitScale(nn.Module):
    """Divide each vector by the root mean square of its elements."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, d) -> (B, N, d)."""
        return x / (x.square().mean(dim=2, keepdim=True) + EPSILON).sqrt()


class ResidualBlock(nn.Module):
    """Two linear layers with GELU between them and a skip connection."""

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(features, hidden)
        self.fc2 = nn.Linear(hidden, features)

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, d) -> (B, N, d)."""
        out: Tensor = x + self.fc2(F.gelu(self.fc1(x)))
        return out


class MeanOfVectors(nn.Module):
    """The mean over the tokens."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, d) -> (B, d)."""
        return x.mean(dim=1)
