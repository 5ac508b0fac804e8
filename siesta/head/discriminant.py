"""A linear discriminant over power-normalised features: class means, and one covariance that all classes share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.head.cosine import Head
from siesta.head.statistics import ClassIds, Features, FeatureStatistics, power_normalized
from siesta.head.whitening import whiten

__all__ = ["SHRINKAGE", "Discriminant", "discriminant_for"]

SHRINKAGE = 0.8
"""Share of a multiple of the identity in the covariance; chosen on held-out images, see docs/results.md."""

_FIRST_ROWS = 8
_TOTAL_SHRINKAGE = 0.2  # of the total covariance, in `closeness`
_TINY = 1e-30  # the least product of squared lengths that is divided by
_CONFIDENCE = 3.5  # logits per spread; the best was 2.3 to 4.5 on held-out images of CUB-200 and CIFAR-100
_SPREAD_CLASSES = 16  # of which the spread is taken


class Discriminant:
    """Linear discriminant analysis on the statistics of samples, to which more samples may be added.

    Attributes:
        base: The statistics that the covariance is taken of.

    The score of a class for z is u S^-1 m - q / 2, where u is the power-normalised z, m the mean of the class, S the
    covariance within classes, shrunk towards a multiple of the identity, and q an unbiased estimate of M S^-1 M for the
    true mean M. The obvious estimate, m S^-1 m, is too large by tr(S^-1 C) / n for a class of n samples with covariance
    C, so that a class of few samples would hardly ever be predicted beside classes of many.

    Logits are scores divided by their spread over the classes, as it is for the means of some classes, times a constant
    that makes their softmax about as confident as it is right before any calibration.

    Samples that are added move the means; the covariance stays that of the statistics it was made of, so that an
    addition costs two products of a triangular matrix and a vector.

    Example:
        >>> statistics = FeatureStatistics.empty(2)
        >>> statistics.add(np.array([1, 1, 2, 2]), np.array([[1.0, 0.1], [1.0, -0.1], [0.1, 1.0], [-0.1, 1.0]]))
        >>> discriminant = Discriminant(statistics)
        >>> discriminant.class_ids[discriminant.logits(np.array([[2.0, 1.0], [0.0, 5.0]])).argmax(axis=1)]
        array([1, 2])
    """

    def __init__(self, statistics: FeatureStatistics, shrinkage: float = SHRINKAGE) -> None:
        """Start from statistics, which are not changed.

        Args:
            statistics: Of the samples that mean and covariance are taken of.
            shrinkage: Share of the identity in the covariance.
        """
        width = statistics.width
        self.base = statistics
        self._shrinkage = shrinkage
        self._rows: dict[int, int] = {}
        self._ids = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)
        self._sums = np.zeros((0, width))
        self._weights = np.zeros((0, width), np.float32)
        self._offsets = np.zeros(0, np.float32)
        self._stale: set[int] = set()
        self._whitening: npt.NDArray[np.float32] | None = None  # W of S^-1 = W^T W
        self._noise = 0.0  # tr(S^-1 C)
        self._total_whitening: npt.NDArray[np.float32] | None = None
        self._factor = 1.0  # from scores to logits
        self._added: list[tuple[npt.NDArray[np.int64], Features]] = []
        self._remembered: dict[int, Features] = {}
        for class_id, count, total in zip(
            statistics.class_ids.tolist(), statistics.counts.tolist(), statistics.sums(), strict=True
        ):
            self._move(class_id, count, total)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def class_ids(self) -> npt.NDArray[np.int64]:
        """The class of each column of the scores, (K,)."""
        return self._ids[: len(self)]

    def add(self, class_ids: ClassIds, features: Features) -> None:
        """Add samples with these class ids (B,) and z (B, D)."""
        self._added.append((class_ids.astype(np.int64), features))
        for class_id, unit in zip(class_ids.tolist(), power_normalized(features.astype(np.float64)), strict=True):
            self._move(class_id, 1, unit)

    def remember(self, class_id: int, vector: Features) -> None:
        """Give a class without samples a mean in the direction of `vector` (D,), as long as those of the others are."""
        self._remembered[class_id] = vector
        means = self._sums[: len(self)] / self._counts[: len(self), None]
        length = float(np.linalg.norm(means, axis=1).mean()) if len(self) else 1.0
        self._move(class_id, 1, length * power_normalized(vector[None].astype(np.float64))[0])

    def added(self) -> int:
        """Return the number of samples that were added."""
        return sum(len(class_ids) for class_ids, _ in self._added)

    def folded(self, count: int | None = None) -> Discriminant:
        """Return a discriminant whose covariance is also that of the first `count` samples added; of all when None."""
        statistics = self.base.copy()
        rest: list[tuple[npt.NDArray[np.int64], Features]] = []
        if self._added:
            class_ids, features = (np.concatenate(part) for part in zip(*self._added, strict=True))
            statistics.add(class_ids[:count], features[:count])
            rest = [] if count is None else [(class_ids[count:], features[count:])]
        folded = Discriminant(statistics, self._shrinkage)
        for class_id, vector in self._remembered.items():
            if not statistics.count(class_id):
                folded.remember(class_id, vector)
        for ids, others in rest:
            folded.add(ids, others)
        return folded

    def affine(self) -> tuple[Features, Features]:
        """Return weights (K, D) and offsets (K,), with which the logits of u are `u @ weights.T - offsets`."""
        self._refresh()
        return self._factor * self._weights[: len(self)], self._factor * self._offsets[: len(self)]

    def logits(self, features: Features) -> npt.NDArray[np.float32]:
        """Return the scores (B, K) of z (B, D)."""
        self._refresh()
        return np.asarray(self._factor * self._scores(power_normalized(features)), dtype=np.float32)

    def closeness(self, features: Features, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float32] | None:
        """Return how close images are to the classes that are predicted for them: cosines, (B,).

        The cosine is that of the angle between an image and the mean of its class, seen from the mean of all samples
        and in the metric of their total covariance. None without samples.

        Args:
            features: z, (B, D).
            rows: Column of the predicted class in the scores, (B,).
        """
        if not self.base.samples:
            return None
        centre = self.base.centre()
        means = self._sums[rows] / self._counts[rows, None]
        images, classes = (
            np.asarray(part - centre, np.float32) for part in (power_normalized(features.astype(np.float64)), means)
        )
        if self._total_whitening is None:
            self._total_whitening, _ = self.base.shrunk(_TOTAL_SHRINKAGE, total=True)
            whiten(self._total_whitening)
        images, classes = images @ self._total_whitening.T, classes @ self._total_whitening.T
        lengths = np.square(images).sum(axis=1) * np.square(classes).sum(axis=1)
        return np.asarray(np.einsum("bd,bd->b", images, classes) / np.sqrt(np.maximum(lengths, _TINY)), np.float32)

    def _scores(self, units: Features) -> Features:
        """Return the scores (B, K) of u (B, D)."""
        return np.asarray(units @ self._weights[: len(self)].T - self._offsets[: len(self)])

    def _move(self, class_id: int, count: int, total: npt.NDArray[np.float64]) -> None:
        """Add a count and a sum (D,) to a class."""
        row = self._rows.setdefault(class_id, len(self._rows))
        if row == len(self._ids):
            self._grow(max(2 * row, _FIRST_ROWS))
        self._ids[row] = class_id
        self._counts[row] += count
        self._sums[row] += total
        self._stale.add(row)

    def _grow(self, capacity: int) -> None:
        for name in ("_ids", "_counts", "_sums", "_weights", "_offsets"):
            old: npt.NDArray[Any] = getattr(self, name)
            new = np.zeros((capacity, *old.shape[1:]), old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def _refresh(self) -> None:
        """Compute the weights of the classes whose means have moved."""
        if not self._stale:
            return
        whitening = self._fitted_whitening()
        rows = np.array(sorted(self._stale))
        counts = self._counts[rows, None]
        whitened = (self._sums[rows] / counts).astype(np.float32) @ whitening.T
        self._weights[rows] = whitened @ whitening
        self._offsets[rows] = 0.5 * (np.square(whitened).sum(axis=1) - self._noise / counts[:, 0])
        some = np.linspace(0, len(self) - 1, min(len(self), _SPREAD_CLASSES)).astype(np.int64)
        means = (self._sums[some] / self._counts[some, None]).astype(np.float32)
        self._factor = _CONFIDENCE / (float(self._scores(means).std(axis=1).mean()) or 1.0)
        self._stale.clear()

    def _fitted_whitening(self) -> npt.NDArray[np.float32]:
        """Return W, with which S^-1 is W^T W; it is computed when it is needed first."""
        if self._whitening is None:
            matrix, spread = self.base.shrunk(self._shrinkage)
            whiten(matrix)
            trace = float(np.einsum("de,de->d", matrix, matrix).sum(dtype=np.float64))  # of S^-1
            self._noise = (len(matrix) - self._shrinkage * spread * trace) / (1 - self._shrinkage)
            self._whitening = matrix
        return self._whitening


def discriminant_for(statistics: FeatureStatistics, head: Head) -> Discriminant:
    """Return the discriminant; a class that only the head knows keeps its vector of the last sleep as its mean."""
    discriminant = Discriminant(statistics)
    for class_id in sorted(set(head.class_ids.tolist()) - set(discriminant.class_ids.tolist())):
        count, vector = head.at_last_sleep(class_id)
        if count:
            discriminant.remember(class_id, vector)
    return discriminant
