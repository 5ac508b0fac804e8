"""The two shapes of latents Z, feature maps (d, r, s) and tokens (N, d), and the d-vectors that both consist of."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

from siesta.contracts import Latents, LatentShape

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["from_vectors", "is_map", "to_vectors", "vector_axis", "vector_count"]


Array = TypeVar("Array", "Tensor", Latents)
"""A torch tensor or a NumPy array."""


def is_map(shape: LatentShape) -> bool:
    """Return whether latents are feature maps (d, r, s), which images also are, and not tokens (N, d).

    Example:
        >>> is_map((80, 14, 14)), is_map((197, 192))
        (True, False)
    """
    return len(shape) == 3


def vector_axis(shape: LatentShape) -> int:
    """Return the axis of a batch of latents, (B, d, r, s) or (B, N, d), along which a vector lies."""
    return 1 if is_map(shape) else 2


def vector_count(shape: LatentShape) -> int:
    """Return how many vectors a sample has: r * s of a feature map, N of tokens.

    Example:
        >>> vector_count((80, 14, 14)), vector_count((197, 192))
        (196, 197)
    """
    return math.prod(shape[1:]) if is_map(shape) else shape[0]


def to_vectors(latents: Array) -> Array:
    """Return the vectors position by position: (B, d, r, s) -> (B * r * s, d) or (B, N, d) -> (B * N, d)."""
    vectors = latents.swapaxes(1, 2).swapaxes(2, 3) if is_map(latents.shape[1:]) else latents
    return vectors.reshape(-1, vectors.shape[-1])


def from_vectors(vectors: Array, shape: LatentShape) -> Array:
    """Return latents of this shape from the vectors of `to_vectors`; feature maps are channels-last in memory."""
    samples = len(vectors) // vector_count(shape)
    if not is_map(shape):
        return vectors.reshape(samples, *shape)
    channels, rows, columns = shape
    return vectors.reshape(samples, rows, columns, channels).swapaxes(2, 3).swapaxes(1, 2)
