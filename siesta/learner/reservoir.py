"""Reservoir sampling: a uniform sample of a stream in bounded memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Reservoir"]


class Reservoir:
    """A uniform sample without replacement of at most `size` rows of a stream.

    Row t, counted from 0, is assigned a place drawn from 0..t and is kept if the place is below `size` (Vitter's
    algorithm R, many rows at a time). While all rows fit, all are kept in order. The sample does not depend on how the
    stream is divided into chunks.

    Example:
        >>> reservoir = Reservoir(size=3, rng=np.random.default_rng(0))
        >>> reservoir.add(np.arange(2))
        >>> reservoir.rows()
        array([0, 1])
        >>> reservoir.add(np.arange(2, 100))
        >>> len(reservoir.rows())
        3
    """

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self._size = size
        self._rng = rng
        self._seen = 0
        self._rows: npt.NDArray[Any] = np.zeros(0)

    def add(self, rows: npt.NDArray[Any]) -> None:
        """Add the next rows of the stream, (N, ...)."""
        if not self._seen:
            self._rows = np.empty((0, *rows.shape[1:]), rows.dtype)
        positions = np.arange(self._seen, self._seen + len(rows))
        drawn = (self._rng.random(len(rows)) * (positions + 1)).astype(np.int64)
        places = np.where(positions < self._size, positions, drawn)
        kept = places < self._size
        self._seen += len(rows)
        self._grow(min(self._seen, self._size))
        self._rows[places[kept]] = rows[kept]  # of two rows with one place, the later one stays

    def _grow(self, needed: int) -> None:
        if needed <= len(self._rows):
            return
        capacity = min(max(needed, 2 * len(self._rows)), self._size)
        larger = np.empty((capacity, *self._rows.shape[1:]), self._rows.dtype)
        larger[: len(self._rows)] = self._rows
        self._rows = larger

    def rows(self) -> npt.NDArray[Any]:
        """Return the sample so far, (at most size, ...)."""
        return self._rows[: self._seen]
