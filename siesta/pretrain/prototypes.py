"""What SwAV and MIRA divide pictures among."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.pretrain.contract import Part

__all__ = ["STILL", "Prototypes", "spread"]

STILL = 5005
"""Steps that SwAV's original keeps its prototypes in place for, one epoch of 200."""
_ROUNDS = 10


def spread(count: int, features: int) -> Tensor:
    """Random directions (K, D) of length one, spread evenly: in every direction their squared cosines sum to K / D.

    Plain random ones are sparse in some direction, and embeddings that tell nothing lower the loss by all going there.
    """
    directions = torch.randn(count, features)
    for _ in range(_ROUNDS):
        left, _, right = torch.linalg.svd(directions, full_matrices=False)
        directions = F.normalize(left @ right)
    return directions


class Prototypes(nn.Module):
    """Directions that pictures are assigned to, (K, D); always of length one.

    They stand still until both a share of the run and a number of steps have passed. Let go while the network tells
    pictures hardly apart, they turn away from all embeddings, which then become one: the loss stays at ln(K), for good.
    """

    begun: Tensor

    def __init__(self, count: int, features: int, thaw: float, still: int) -> None:
        super().__init__()
        self.directions = nn.Parameter(spread(count, features))
        self.register_buffer("begun", torch.zeros((), dtype=torch.int64))
        self._thaw, self._still = thaw, still

    def part(self) -> Part:
        """How they learn."""
        return Part(self.parameters(), self._factor)

    def _factor(self, fraction: float) -> float:
        return float(fraction >= self._thaw and int(self.begun) > self._still)

    @torch.no_grad()
    def begin_step(self) -> None:
        """Counts a step, and brings the directions back to length one after the last."""
        self.begun += 1
        self.directions.copy_(F.normalize(self.directions))

    def forward(self, embeddings: Tensor) -> Tensor:
        """(B, D) of length one -> cosines (B, K)."""
        return F.linear(embeddings, self.directions)
