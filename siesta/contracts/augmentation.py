"""Mixing of latents during sleep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:  # the command line's help imports contracts, and must not load torch
    from torch import Tensor

__all__ = ["Augmentation"]


class Augmentation(Protocol):
    """Mixes two batches of latents; a plain function is enough."""

    def __call__(self, first: Tensor, second: Tensor, rng: np.random.Generator, /) -> tuple[Tensor, float]:
        """Return mixed latents of the shape of both, (B, d, r, s) or (B, N, d), and lambda, the share of `first`."""
