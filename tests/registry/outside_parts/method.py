"""A method, with a setting of its own."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from siesta.methods import MethodSettings, MethodSpec
from siesta.methods.statistics import Floats, StatisticsMethod

__all__ = ["COSINE_MEANS"]


class CosineSettings(MethodSettings):
    """Settings: `power`, to which the elements of z are raised before they are compared."""

    power: float = Field(default=1.0, gt=0)


class CosineMeans(StatisticsMethod[CosineSettings]):
    """The nearest class mean by the cosine."""

    codec: ClassVar[str] = "half_precision"
    Settings = CosineSettings

    def scores(self, features: Floats) -> Floats:
        """Return the cosine to each class mean: (B, D) -> (B, K)."""
        first, second = self._unit(features), self._unit(self.means())
        scores: Floats = first @ second.T
        return scores

    def _unit(self, vectors: Floats) -> Floats:
        powers = np.sign(vectors) * np.abs(vectors) ** self.settings.power
        unit: Floats = powers / np.linalg.norm(powers, axis=1, keepdims=True)
        return unit


COSINE_MEANS = MethodSpec(CosineMeans)
