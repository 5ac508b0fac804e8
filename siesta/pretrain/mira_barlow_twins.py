"""MIRA and Barlow Twins together, a row of the SIESTA paper's table of methods.

The paper does not say how it joins them. Here the losses are added, that of Barlow Twins for one number of its
embedding, on the two large crops.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from torch import nn

from siesta.pretrain.barlow_twins import barlow_loss
from siesta.pretrain.contract import Outcome, Part, Training, Views
from siesta.pretrain.crops import Crop
from siesta.pretrain.encoder import Encoder, projector
from siesta.pretrain.mira import MIRA
from siesta.pretrain.swav import LARGE_CROPS

__all__ = ["MIRABarlowTwins"]


class MIRABarlowTwins(nn.Module):
    """One encoder, a head for each."""

    plan: ClassVar[tuple[Crop, ...]] = MIRA.plan
    recipe: ClassVar[Training] = MIRA.recipe
    labelled: ClassVar[bool] = False

    def __init__(
        self,
        encoder: Encoder,
        *,
        prototypes: int = 3000,
        target_temperature: float = 0.225,
        hidden: int = 2048,
        width: int = 8192,
        redundancy: float = 0.0051,
    ) -> None:
        super().__init__()
        self.mira = MIRA(encoder, prototypes=prototypes, target_temperature=target_temperature, hidden=hidden)
        self.projector = projector(encoder.features, width, width, width)
        self._width, self._redundancy = width, redundancy

    @property
    def encoder(self) -> Encoder:
        """What is kept."""
        return self.mira.encoder

    def parts(self) -> list[Part]:
        """MIRA's, and the second head."""
        return [*self.mira.parts(), Part(self.projector.parameters())]

    def forward(self, views: Views, fraction: float) -> Outcome:
        """Crops, the large ones first -> loss."""
        z = self.encoder.many(views.crops)
        found = self.mira.of_features(z, views, fraction)
        first, second = (self.projector(rows) for rows in z.chunk(len(views.crops))[:LARGE_CROPS])
        return replace(found, loss=found.loss + barlow_loss(first, second, self._redundancy) / self._width)
