"""Prototypes that SwAV and MIRA assign images to."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.pretrain.contract import ParamGroup

__all__ = ["FROZEN_STEPS", "Prototypes", "spread_directions"]

FROZEN_STEPS = 5005
"""Steps for which SwAV's authors freeze the prototypes: one epoch of 200."""

_SPREAD_ROUNDS = 10


def spread_directions(count: int, features: int) -> Tensor:
    """Return random unit vectors (K, D), spread evenly: along every direction their squared cosines sum to K / D.

    Independent random vectors are sparse along some direction, and a collapsing network lowers the loss by moving all
    embeddings there.
    """
    directions = torch.randn(count, features)
    for _ in range(_SPREAD_ROUNDS):
        directions = F.normalize(_polar_factor(directions))
    return directions


def _polar_factor(matrix: Tensor) -> Tensor:
    """Return the nearest matrix whose singular values are all one."""
    try:
        left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    except RuntimeError:  # in single precision, LAPACK does not always converge for nearly equal singular values
        left, _, right = torch.linalg.svd(matrix.double(), full_matrices=False)
    factor: Tensor = left @ right
    return factor.to(matrix.dtype)


class Prototypes(nn.Module):
    """Unit vectors (K, D) that images are assigned to.

    They are frozen until both a fraction of the run (`thaw`) and a number of steps (`still`) have passed. Trained while
    the network hardly distinguishes images, they turn away from all embeddings, which then collapse: the loss stays
    at ln(K).
    """

    begun: Tensor

    def __init__(self, count: int, features: int, thaw: float, still: int) -> None:
        super().__init__()
        self.directions = nn.Parameter(spread_directions(count, features))
        self.register_buffer("begun", torch.zeros((), dtype=torch.int64))
        self._thaw_fraction = thaw
        self._frozen_steps = still

    def param_group(self) -> ParamGroup:
        """Return the prototypes with a learning-rate factor of zero while they are frozen."""
        return ParamGroup(self.parameters(), self._lr_factor)

    def _lr_factor(self, fraction: float) -> float:
        return float(fraction >= self._thaw_fraction and int(self.begun) > self._frozen_steps)

    @torch.no_grad()
    def begin_step(self) -> None:
        """Count a step and normalise the directions, which the last step changed."""
        self.begun += 1
        self.directions.copy_(F.normalize(self.directions))

    def forward(self, embeddings: Tensor) -> Tensor:
        """Unit vectors (B, D) -> cosines (B, K)."""
        return F.linear(embeddings, self.directions)
