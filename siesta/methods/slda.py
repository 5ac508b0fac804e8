"""Streaming linear discriminant analysis (Hayes and Kanan 2020)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from siesta.contracts import Codes
from siesta.methods.frozen import Floats, Frozen, Rows
from siesta.methods.settings import MethodSettings

__all__ = ["SLDA", "SLDASettings"]


class SLDASettings(MethodSettings):
    """The published value.

    Attributes:
        shrinkage: Share of the identity in the covariance that is inverted.
    """

    shrinkage: float = Field(default=1e-4, ge=0, le=1)


class SLDA(Frozen[SLDASettings]):
    """Class means and one covariance for all classes, both kept up sample by sample; a linear discriminant answers.

    With n samples so far, c of them of the new one's class, whose mean was m, the scatter grows by
    c / (c + 1) (z - m)(z - m)^T and the covariance is scatter / n. That is exactly the covariance within classes of
    all samples, in whatever order they came. (The publication weighs by n / (n + 1) instead, and takes the first
    sample of a class from the origin; it is nearly the same, but no batch formula gives it.)
    """

    Settings = SLDASettings
    _scatter: Floats
    _discriminant: tuple[Floats, Floats] | None

    def take(self, features: Floats, rows: Rows) -> None:
        """Counts z (B, D) of classes (B,) in, in order; the scatter grows by one product for all of them."""
        self._discriminant = None
        deviations = np.empty_like(features)
        for index, row in enumerate(rows.tolist()):
            count = int(self._counts[row])
            mean = self._totals[row] / max(count, 1)
            deviations[index] = math.sqrt(count / (count + 1)) * (features[index] - mean)
            super().take(features[index : index + 1], rows[index : index + 1])
        self._scatter += deviations.T @ deviations

    def learn_many(self, codes: Codes, labels: Sequence[str]) -> None:
        """Counts samples in, in order."""
        super().learn_many(codes, labels)
        self._home.counter.flops["wake"] += 2.0 * self._width**2 * len(codes)

    def covariance(self) -> Floats:
        """Within classes, (D, D)."""
        covariance: Floats = self._scatter / self._counts.sum()
        return covariance

    def discriminant(self) -> tuple[Floats, Floats]:
        """W = S^-1 means (D, K), S the shrunk covariance, and half of means W (K,); kept until the next lesson."""
        if self._discriminant is None:
            share = self.settings.shrinkage
            shrunk = (1 - share) * self.covariance() + share * np.eye(self._width)
            means = self.means()
            weights = np.linalg.solve(shrunk, means.T).astype(np.float64, copy=False)
            offsets: Floats = 0.5 * (means.T * weights).sum(axis=0)
            self._discriminant = weights, offsets
            self._home.counter.flops["inference"] += self._width**2 * (2 / 3 * self._width + 2.0 * len(means))
        return self._discriminant

    def scores(self, features: Floats) -> Floats:
        """Linear in z: (B, D) -> (B, K)."""
        weights, offsets = self.discriminant()
        scores: Floats = features @ weights - offsets
        return scores

    def mean_bytes(self) -> int:
        """What means and covariance take."""
        return super().mean_bytes() + self._scatter.nbytes

    def blank(self) -> dict[str, Tensor]:
        """The state of one that knows nothing."""
        return {**super().blank(), "scatter": torch.zeros(self._width, self._width, dtype=torch.float64)}

    def state(self) -> dict[str, Tensor]:
        """Means and scatter."""
        return {**super().state(), "scatter": torch.from_numpy(self._scatter)}

    def load(self, state: dict[str, Tensor]) -> None:
        """Goes on from what `state()` gave."""
        super().load(state)
        self._scatter = state["scatter"].numpy()
        self._discriminant = None
