"""Streaming linear discriminant analysis (Hayes and Kanan 2020)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from siesta.contracts import Resources
from siesta.methods.frozen import Floats, Frozen, Rows
from siesta.methods.settings import MethodSettings

__all__ = ["SLDA", "SLDASettings"]


class SLDASettings(MethodSettings):
    """The published value.

    Attributes:
        shrinkage: Share of the identity in the covariance that is inverted.
    """

    shrinkage: float = Field(default=1e-4, ge=0, le=1)


class SLDA(Frozen):
    """Class means and one covariance for all classes, both kept up sample by sample; a linear discriminant answers.

    With n samples so far, c of them of the new one's class, whose mean was m, the scatter grows by
    c / (c + 1) (z - m)(z - m)^T and the covariance is scatter / n. That is exactly the covariance within classes of
    all samples, in whatever order they came. (The publication weighs by n / (n + 1) instead, and takes the first
    sample of a class from the origin; it is nearly the same, but no batch formula gives it.)
    """

    Settings = SLDASettings

    def __init__(self, folder: Path, settings: SLDASettings, seed: int) -> None:
        self._scatter: Floats | None = None
        self._weights: tuple[Floats, Floats] | None = None
        self._shrinkage = settings.shrinkage
        super().__init__(folder, settings, seed)

    def take(self, features: Floats, rows: Rows) -> None:
        """Counts z (B, D) of classes (B,) in, in order; the scatter as one product for all of them."""
        self._weights = None
        deviations = np.empty_like(features)
        for index, (z, row) in enumerate(zip(features, rows, strict=True)):
            count = int(self._counts[row])
            mean = self._totals[row] / max(count, 1)
            deviations[index] = np.sqrt(count / (count + 1)) * (z - mean)
            super().take(z[None], row[None])
        if self._scatter is None:
            self._scatter = np.zeros((self._width, self._width))
        self._scatter += deviations.T @ deviations

    def covariance(self) -> Floats:
        """Within classes, (D, D)."""
        assert self._scatter is not None, "nothing was learned"
        return self._scatter / self._counts.sum()

    def scores(self, features: Floats) -> Floats:
        """z W - c with W = S^-1 means, S the shrunk covariance, and c the half of means W: (B, D) -> (B, K)."""
        if self._weights is None:
            identity = np.eye(self._width)
            shrunk = (1 - self._shrinkage) * self.covariance() + self._shrinkage * identity
            means = self.means()
            weights = np.linalg.solve(shrunk, means.T)  # (D, K)
            self._weights = weights, 0.5 * (means.T * weights).sum(axis=0)
        weights, offsets = self._weights
        scores: Floats = features @ weights - offsets
        return scores

    def resources(self) -> Resources:
        """What it has cost so far; the covariance counts among the means."""
        
    def state(self) -> dict[str, Tensor]:
        """Means and scatter."""
        return {**super().state(), "scatter": torch.from_numpy(self._scatter)}

    def load(self, state: dict[str, Tensor]) -> None:
        """Goes on from what `state()` gave."""
        super().load(state)
        self._scatter = state["scatter"].numpy()
