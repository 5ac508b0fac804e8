"""Streaming linear discriminant analysis (Hayes and Kanan 2020)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from siesta.contracts import Codes
from siesta.methods.settings import MethodSettings
from siesta.methods.statistics import Floats, Rows, StatisticsMethod

__all__ = ["SLDA", "SLDASettings"]


class SLDASettings(MethodSettings):
    """The published value.

    Attributes:
        shrinkage: Share of the identity in the covariance that is inverted.
    """

    shrinkage: float = Field(default=1e-4, ge=0, le=1)


class SLDA(StatisticsMethod[SLDASettings]):
    """A linear discriminant on class means and one covariance for all classes, both updated sample by sample.

    A new sample z of a class with c samples so far, whose mean is m, adds c / (c + 1) (z - m)(z - m)^T to the scatter;
    with n samples in all the covariance is scatter / n. This is exactly the within-class covariance of all samples,
    whatever their order. (The publication weighs by n / (n + 1) instead and takes the first sample of a class from the
    origin: nearly the same, but without an equivalent batch formula.)
    """

    Settings = SLDASettings
    _scatter: Floats
    _discriminant: tuple[Floats, Floats] | None

    def update(self, features: Floats, rows: Rows) -> None:
        """Add z (B, D) of the classes in `rows` (B,), in order; one matrix product updates the scatter for all."""
        self._discriminant = None
        deviations = np.empty_like(features)
        for index, row in enumerate(rows.tolist()):
            count = int(self._counts[row])
            mean = self._totals[row] / max(count, 1)
            deviations[index] = math.sqrt(count / (count + 1)) * (features[index] - mean)
            super().update(features[index : index + 1], rows[index : index + 1])
        self._scatter += deviations.T @ deviations

    def learn_many(self, codes: Codes, labels: Sequence[str]) -> None:
        """Add samples to the statistics, in order."""
        super().learn_many(codes, labels)
        self.workspace.counter.flops["wake"] += 2.0 * self._width**2 * len(codes)

    def covariance(self) -> Floats:
        """Return the within-class covariance (D, D)."""
        covariance: Floats = self._scatter / self._counts.sum()
        return covariance

    def discriminant(self) -> tuple[Floats, Floats]:
        """Return weights W = S^-1 M^T (D, K) and offsets diag(M W) / 2 (K,), S being the shrunk covariance.

        They are cached until the next sample.
        """
        if self._discriminant is None:
            share = self.settings.shrinkage
            shrunk = (1 - share) * self.covariance() + share * np.eye(self._width)
            means = self.means()
            weights = np.linalg.solve(shrunk, means.T).astype(np.float64, copy=False)
            offsets: Floats = 0.5 * (means.T * weights).sum(axis=0)
            self._discriminant = weights, offsets
            solving = self._width**2 * (2 / 3 * self._width + 2.0 * len(means))
            self.workspace.counter.flops["inference"] += solving
        return self._discriminant

    def scores(self, features: Floats) -> Floats:
        """Return the linear discriminant scores: (B, D) -> (B, K)."""
        weights, offsets = self.discriminant()
        scores: Floats = features @ weights - offsets
        return scores

    def statistics_bytes(self) -> int:
        """Return the bytes of means and scatter."""
        return super().statistics_bytes() + self._scatter.nbytes

    def empty_state(self) -> dict[str, Tensor]:
        """Return the state before any sample."""
        return {**super().empty_state(), "scatter": torch.zeros(self._width, self._width, dtype=torch.float64)}

    def state(self) -> dict[str, Tensor]:
        """Return means and scatter."""
        return {**super().state(), "scatter": torch.from_numpy(self._scatter)}

    def load(self, state: dict[str, Tensor]) -> None:
        """Restore the statistics from `state()`."""
        super().load(state)
        self._scatter = state["scatter"].numpy()
        self._discriminant = None
