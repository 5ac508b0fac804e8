"""Vectors as the input of a learner: checked one by one, so that none that cannot be used is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput

__all__ = ["VectorInput", "VectorLike"]

VectorLike: TypeAlias = npt.NDArray[Any] | Sequence[float]
"""A vector: numbers in an array or a list."""

_NUMBERS = "iuf"  # kinds of NumPy's types
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class VectorInput:
    """Vectors of one length; see `contracts.Input`.

    Attributes:
        features: d, the length.

    Example:
        >>> VectorInput(2).read([1, 2.5])
        array([1. , 2.5], dtype=float32)
        >>> VectorInput(2).read([1, float("nan")])
        Traceback (most recent call last):
        siesta.errors.BadInput: element 2 of the vector is nan: give finite numbers
    """

    noun: ClassVar[str] = "vector"

    features: int

    @property
    def shape(self) -> tuple[int, int]:
        """(1, d): a vector is a single token."""
        return 1, self.features

    def read(self, given: VectorLike) -> npt.NDArray[np.float32]:
        """Return a vector (d,) in float32."""
        expected = f"this learner takes vectors of {self.features} numbers"
        if not isinstance(given, np.ndarray | list | tuple):
            raise BadInput(f"{expected}, not {_kind(given)}: give an array or a list of numbers")
        try:
            array = np.asarray(given)
        except ValueError:  # lists of several lengths
            raise BadInput(
                f"{expected}, and a list of lists of several lengths is none: give one number each"
            ) from None
        if array.dtype.kind not in _NUMBERS:
            raise BadInput(f"{expected}, and {_kind(given, array)} has other elements: give real numbers")
        if array.shape != self.shape[1:]:
            raise BadInput(
                f"{expected}, and this one has shape {array.shape}: give one vector of that length at a time"
            )
        with np.errstate(over="ignore"):  # what is too large becomes infinite, which is refused
            unusable = np.flatnonzero(~(np.abs(array.astype(np.float64)) <= _LARGEST))
        if len(unusable):
            raise BadInput(f"element {unusable[0] + 1} of the vector is {array[unusable[0]]}: give finite numbers")
        return array.astype(np.float32, copy=False)

    def batch(self, inputs: Sequence[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
        """Return vectors as the latents that they are, (B, 1, d)."""
        return np.stack(inputs)[:, None]


def _kind(given: object, array: npt.NDArray[Any] | None = None) -> str:
    """Return what messages call an object that is no vector of numbers."""
    if array is not None and isinstance(given, np.ndarray):
        return f"an array of {array.dtype}"
    return "text" if isinstance(given, str) else f"an object of type {type(given).__name__}"
