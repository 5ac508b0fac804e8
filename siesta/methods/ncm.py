"""Nearest class mean (Mensink et al. 2013)."""

from __future__ import annotations

from siesta.methods.settings import MethodSettings
from siesta.methods.statistics import Floats, StatisticsMethod

__all__ = ["NCM"]


class NCM(StatisticsMethod[MethodSettings]):
    """Nearest class mean of z by Euclidean distance, which is SLDA with the identity as its covariance."""

    Settings = MethodSettings

    def scores(self, features: Floats) -> Floats:
        """Return -|z - mean|^2 / 2 up to a term that all classes share: (B, D) -> (B, K)."""
        means = self.means()
        scores: Floats = features @ means.T - 0.5 * (means**2).sum(axis=1)
        return scores
