"""Sufficient statistics of features: counts and sums by class, and one second-order matrix that all classes share.

The features are u, the power-normalised z. All sums are float64 and additive, so that a sample can be taken out again
exactly, whatever came after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ClassIds", "FeatureStatistics", "Features", "power_normalized"]

Features = npt.NDArray[np.floating[Any]]
Sums = npt.NDArray[np.float64]
ClassIds = npt.NDArray[np.integer[Any]]

_TINY = 1e-12  # the least length that is divided by
_ROUNDING = 1e-9  # sum of variances that is nothing but rounding errors, where u have length one
_BLOCK = 128  # rows of a matrix that are computed at once


def power_normalized(features: Features) -> Features:
    """Return the square roots of features (B, D), with their signs, divided by the length of each row.

    Roots keep the few largest features of an image from deciding alone (Perronnin et al., ECCV 2010).
    """
    lengths = np.sqrt(np.abs(features).sum(axis=1, keepdims=True))
    return np.asarray(np.sign(features) * np.sqrt(np.abs(features)) / np.maximum(lengths, _TINY))


class FeatureStatistics:
    """Counts, sums and the second-order matrix of a set of samples.

    Example:
        >>> statistics = FeatureStatistics.empty(2)
        >>> statistics.add(np.array([7, 7]), np.array([[3.0, 0.0], [0.0, 2.0]]))
        >>> statistics.counts, statistics.means()
        (array([2]), array([[0.5, 0.5]]))
        >>> statistics.remove(np.array([7]), np.array([[3.0, 0.0]]))
        >>> statistics.gram
        array([[0., 0.],
               [0., 1.]])
    """

    def __init__(self, sums: Mapping[int, tuple[int, Sums]], gram: Sums, width: int | None = None) -> None:
        """Take over what was summed before.

        Args:
            sums: Count and sum of u (D,) of each class, by class id.
            gram: Sum of u u^T, (D, D), or the rows of its upper triangle one after the other, as they are stored.
            width: D; the length of the matrix when None.
        """
        self._sums = dict(sorted(sums.items()))
        self._gram = gram
        self.width = len(gram) if width is None else width

    @classmethod
    def empty(cls, features: int) -> FeatureStatistics:
        """Return the statistics of no samples."""
        return cls({}, np.zeros((features, features)))

    def copy(self) -> FeatureStatistics:
        """Return an independent copy."""
        return FeatureStatistics(self._sums, self.gram.copy())

    @property
    def gram(self) -> Sums:
        """Sum of u u^T over all samples, (D, D); see `power_normalized` for u."""
        if self._gram.ndim == 1:
            gram = np.zeros((self.width, self.width))
            for index, row in enumerate(self._triangle(0, self.width)):
                gram[index, index:] = row
                gram[index:, index] = row
            self._gram = gram
        return self._gram

    @gram.setter
    def gram(self, gram: Sums) -> None:
        self._gram = gram

    def _triangle(self, start: int, stop: int) -> Iterator[Sums]:
        """Yield rows of the upper triangle of the matrix, each from the diagonal on."""
        for index in range(start, stop):
            if self._gram.ndim == 2:
                yield self._gram[index, index:]
            elif not len(self._gram):  # nothing is stored before the first sample
                yield np.zeros(self.width - index)
            else:
                first = index * self.width - index * (index - 1) // 2
                yield self._gram[first : first + self.width - index]

    @property
    def class_ids(self) -> npt.NDArray[np.int64]:
        """The classes with samples, ascending, (K,)."""
        return np.array(list(self._sums), dtype=np.int64)

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Number of samples of each class, (K,)."""
        return np.array([count for count, _ in self._sums.values()], dtype=np.int64)

    @property
    def samples(self) -> int:
        """Number of all samples."""
        return int(self.counts.sum())

    def count(self, class_id: int) -> int:
        """Return the number of samples of a class; 0 if it has none."""
        return self._sums[class_id][0] if class_id in self._sums else 0

    def sum_of(self, class_id: int) -> Sums:
        """Return the sum of u (D,) of a class; zeros if it has no samples."""
        return self._sums[class_id][1] if class_id in self._sums else np.zeros(self.width)

    def sums(self) -> Sums:
        """Return the sum of u of each class, (K, D)."""
        return np.array([total for _, total in self._sums.values()]).reshape(-1, self.width)

    def means(self) -> Sums:
        """Return the mean u of each class, (K, D)."""
        return np.asarray(self.sums() / self.counts[:, None])

    def covariance(self) -> Sums:
        """Return the unbiased covariance within classes, (D, D); zero where no class has two samples."""
        return self._whole(self._within())

    def centre(self) -> Sums:
        """Return the mean u of all samples, (D,)."""
        return np.asarray(self.sums().sum(axis=0) / self.samples)

    def total_covariance(self) -> Sums:
        """Return the covariance of all samples around their centre, (D, D)."""
        return self._whole(self._around_centre())

    def shrunk(self, shrinkage: float, *, total: bool = False) -> tuple[npt.NDArray[np.float32], float]:
        """Return the lower triangle (D, D) of a covariance that is shrunk to a multiple of the identity.

        It is computed in float64, a few rows at a time, because two such matrices would be most of a process's memory.

        Args:
            shrinkage: Share of the identity; the rest is that of the covariance.
            total: Take the total covariance, not that within classes.

        Returns:
            The triangle, and the identity's factor before the share is taken: the mean variance, or 1 / D where there
            is none yet.
        """
        shrunk = np.zeros((self.width, self.width), np.float32)
        variances = np.zeros(self.width)
        for index, row in enumerate(self._around_centre() if total else self._within()):
            shrunk[index:, index] = (1 - shrinkage) * row
            variances[index] = row[0]
        if variances.sum() < _ROUNDING:  # the samples of each class are equal
            shrunk.fill(0)
            variances.fill(0)
        spread = float(variances.sum()) / self.width or 1 / self.width
        shrunk[np.diag_indices(self.width)] = (1 - shrinkage) * variances + shrinkage * spread
        return shrunk, spread

    def _within(self) -> Iterator[Sums]:
        """Yield the rows of the upper triangle of the covariance within classes."""
        means = self.means()
        weighted = means.T * self.counts
        degrees = max(self.samples - len(means), 1)
        for start in range(0, self.width, _BLOCK):
            scatter = weighted[start : start + _BLOCK] @ means[:, start:]
            for offset, row in enumerate(self._triangle(start, start + len(scatter))):
                yield (row - scatter[offset, offset:]) / degrees

    def _around_centre(self) -> Iterator[Sums]:
        """Yield the rows of the upper triangle of the total covariance."""
        centre, samples = self.centre(), self.samples
        for index, row in enumerate(self._triangle(0, self.width)):
            yield row / samples - centre[index] * centre[index:]

    def _whole(self, rows: Iterator[Sums]) -> Sums:
        """Return the symmetric matrix (D, D) with these rows in its upper triangle."""
        whole = np.zeros((self.width, self.width))
        for index, row in enumerate(rows):
            whole[index, index:] = row
            whole[index:, index] = row
        return whole

    def add(self, class_ids: ClassIds, features: Features) -> None:
        """Add samples with these class ids (B,) and z (B, D)."""
        self._update(class_ids, features, 1)

    def remove(self, class_ids: ClassIds, features: Features) -> None:
        """Take samples out that were added with these class ids (B,) and z (B, D)."""
        self._update(class_ids, features, -1)

    def _update(self, class_ids: ClassIds, features: Features, sign: int) -> None:
        units = power_normalized(features.astype(np.float64))
        self.gram += sign * (units.T @ units)
        for class_id, unit in zip(class_ids.tolist(), units, strict=True):
            count, total = self._sums.get(class_id, (0, np.zeros(self.width)))
            self._put(class_id, count + sign, total + sign * unit)

    def merge(self, class_id: int, into: int) -> None:
        """Make the samples of one class samples of another."""
        count, total = self._sums.pop(class_id, (0, np.zeros(self.width)))
        known, sum_before = self._sums.get(into, (0, np.zeros(self.width)))
        self._put(into, known + count, sum_before + total)

    def _put(self, class_id: int, count: int, total: Sums) -> None:
        """Set a class; one without samples has none of their rounding errors left either."""
        is_new = class_id not in self._sums
        if count:
            self._sums[class_id] = count, total
        else:
            self._sums.pop(class_id, None)
        if is_new:
            self._sums = dict(sorted(self._sums.items()))

    # -- storage --------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what is stored; of the symmetric matrix the upper triangle, nothing without samples."""
        return {
            "class_ids": self.class_ids,
            "counts": self.counts,
            "sums": self.sums(),
            "gram": np.concatenate(list(self._triangle(0, self.width))) if self._sums else np.zeros(0),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> FeatureStatistics:
        """Return the statistics that `arrays` were made of."""
        counts = zip(arrays["counts"].tolist(), arrays["sums"], strict=True)
        sums = dict(zip(arrays["class_ids"].tolist(), counts, strict=True))
        return cls(sums, arrays["gram"], width=arrays["sums"].shape[1])
