"""Random Fourier features (Rahimi and Recht, NIPS 2007): tables of numbers as vectors that a learner can separate.

A learner compares directions of vectors. That suits embeddings, but in a table the length of a row says as much as its
direction. The cosines of random projections have nearly the same length for all rows, and their inner products are
those of a Gaussian kernel, so classes need not be separable by planes either.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput
from siesta.rng import Purpose, generator

__all__ = ["RandomFeatures"]


class RandomFeatures:
    """Maps rows of numbers to vectors; columns have names, which may come and go.

    Example:
        >>> features = RandomFeatures(8, gamma=0.5, seed=0)
        >>> ab, ba = features.of_dict({"a": 1.0, "b": 2.0}), features.of_dict({"b": 2.0, "a": 1.0})
        >>> ab.shape, bool((ab == ba).all())
        ((8,), True)
    """

    def __init__(self, count: int, gamma: float, seed: int) -> None:
        """Draw the phases.

        Args:
            count: D, the length of the vectors.
            gamma: The kernel is exp(-gamma |x - y|^2).
            seed: Seed of projections and phases.
        """
        if count < 1 or not 0 < gamma < np.inf:
            raise BadInput(f"{count} random features with gamma {gamma} are none: give positive numbers")
        self._count = count
        self._deviation = np.sqrt(2 * gamma)
        self._seed = seed
        self._phases = generator(seed, Purpose.RANDOM_FEATURES, 0).uniform(0, 2 * np.pi, count)
        self._projections: dict[str, npt.NDArray[np.float64]] = {}

    def _projection(self, name: str) -> npt.NDArray[np.float64]:
        """Return the projection (D,) of a column, which depends on its name only."""
        if name not in self._projections:
            stream = generator(self._seed, Purpose.RANDOM_FEATURES, 1 + zlib.crc32(name.encode("utf-8", "replace")))
            self._projections[name] = stream.normal(0, self._deviation, self._count)
        return self._projections[name]

    def of_array(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Return the vectors (B, D) of rows (B, F); column i is called "i"."""
        projections = np.stack([self._projection(str(column)) for column in range(rows.shape[1])])
        return self._cosines(rows.astype(np.float64) @ projections)

    def of_dict(self, row: Mapping[Any, Any]) -> npt.NDArray[np.float32]:
        """Return the vector (D,) of a row; text counts as a column of its own that is one."""
        total = np.zeros(self._count)
        for name, value in sorted(((str(name), value) for name, value in row.items()), key=lambda pair: pair[0]):
            if isinstance(value, str):
                total += self._projection(f"{name}={value}")
                continue
            try:
                number = float(value)
            except (TypeError, ValueError) as error:
                raise BadInput(f"the feature '{name}' is {value!r}: give numbers or text") from error
            if not np.isfinite(number):
                raise BadInput(f"the feature '{name}' is {number}: give finite numbers")
            total += number * self._projection(name)
        return self._cosines(total)

    def _cosines(self, projected: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        return np.asarray(np.sqrt(2 / self._count) * np.cos(projected + self._phases), dtype=np.float32)
