"""Sufficient statistics of features: counts and sums by class, and one second-order matrix that all classes share.

The features are u, the power-normalised z. All sums are float64 and additive, so that a sample can be taken out again
exactly, whatever came after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ClassIds", "FeatureStatistics", "Features", "power_normalized"]

Features = npt.NDArray[np.floating[Any]]
Sums = npt.NDArray[np.float64]
ClassIds = npt.NDArray[np.integer[Any]]

_TINY = 1e-12  # the least length that is divided by


def power_normalized(features: Features) -> Features:
    """Return the square roots of features (B, D), with their signs, divided by the length of each row.

    Roots keep the few largest features of an image from deciding alone (Perronnin et al., ECCV 2010).
    """
    lengths = np.sqrt(np.abs(features).sum(axis=1, keepdims=True))
    return np.asarray(np.sign(features) * np.sqrt(np.abs(features)) / np.maximum(lengths, _TINY))


class FeatureStatistics:
    """Counts, sums and the second-order matrix of a set of samples.

    Attributes:
        gram: Sum of u u^T over all samples, (D, D); see `power_normalized` for u.

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

    def __init__(self, sums: Mapping[int, tuple[int, Sums]], gram: Sums) -> None:
        """Take over what was summed before.

        Args:
            sums: Count and sum of u (D,) of each class, by class id.
            gram: Sum of u u^T, (D, D).
        """
        self._sums = dict(sorted(sums.items()))
        self.gram = gram

    @classmethod
    def empty(cls, features: int) -> FeatureStatistics:
        """Return the statistics of no samples."""
        return cls({}, np.zeros((features, features)))

    def copy(self) -> FeatureStatistics:
        """Return an independent copy."""
        return FeatureStatistics(self._sums, self.gram.copy())

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
        return self._sums[class_id][1] if class_id in self._sums else np.zeros(len(self.gram))

    def sums(self) -> Sums:
        """Return the sum of u of each class, (K, D)."""
        return np.array([total for _, total in self._sums.values()]).reshape(-1, len(self.gram))

    def means(self) -> Sums:
        """Return the mean u of each class, (K, D)."""
        return np.asarray(self.sums() / self.counts[:, None])

    def covariance(self) -> Sums:
        """Return the unbiased covariance within classes, (D, D); zero where no class has two samples."""
        means = self.means()
        scatter: Sums = (means.T * self.counts) @ means
        np.subtract(self.gram, scatter, out=scatter)  # in place, as the matrix is large
        scatter /= max(self.samples - len(means), 1)
        return scatter

    def centre(self) -> Sums:
        """Return the mean u of all samples, (D,)."""
        return np.asarray(self.sums().sum(axis=0) / self.samples)

    def total_covariance(self) -> Sums:
        """Return the covariance of all samples around their centre, (D, D)."""
        centre = self.centre()
        return np.asarray(self.gram / self.samples - np.outer(centre, centre))

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
            count, total = self._sums.get(class_id, (0, np.zeros(len(self.gram))))
            self._put(class_id, count + sign, total + sign * unit)

    def merge(self, class_id: int, into: int) -> None:
        """Make the samples of one class samples of another."""
        count, total = self._sums.pop(class_id, (0, np.zeros(len(self.gram))))
        known, sum_before = self._sums.get(into, (0, np.zeros(len(self.gram))))
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
        rows = [row[index:] for index, row in enumerate(self.gram)]
        return {
            "class_ids": self.class_ids,
            "counts": self.counts,
            "sums": self.sums(),
            "gram": np.concatenate(rows) if self._sums else np.zeros(0),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> FeatureStatistics:
        """Return the statistics that `arrays` were made of."""
        counts = zip(arrays["counts"].tolist(), arrays["sums"], strict=True)
        width = arrays["sums"].shape[1]
        gram = np.zeros((width, width))
        if len(arrays["gram"]):
            start = 0
            for index in range(width):
                row = arrays["gram"][start : start + width - index]
                gram[index, index:] = row
                gram[index:, index] = row
                start += len(row)
        return cls(dict(zip(arrays["class_ids"].tolist(), counts, strict=True)), gram)
