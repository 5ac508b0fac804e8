"""Nearest class mean (Mensink et al. 2013)."""

from __future__ import annotations

from siesta.methods.frozen import Floats, Frozen
from siesta.methods.settings import MethodSettings

__all__ = ["NCM"]


class NCM(Frozen[MethodSettings]):
    """The class whose mean z is nearest, in the Euclidean sense: SLDA with the identity as its covariance."""

    Settings = MethodSettings

    def scores(self, features: Floats) -> Floats:
        """-|z - mean|^2 / 2, but for the part that is the same for all classes: (B, D) -> (B, K)."""
        means = self.means()
        scores: Floats = features @ means.T - 0.5 * (means**2).sum(axis=1)
        return scores
