"""MIRA and Barlow Twins combined, a row of the SIESTA paper's table of pre-training methods.

The paper does not say how it combines them. Here the two losses are added, that of Barlow Twins divided by the width of
its embedding, on the two large crops.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from torch import nn

from siesta.pretrain.barlow_twins import barlow_loss
from siesta.pretrain.contract import ParamGroup, PretrainOutput, TrainingRecipe, Views
from siesta.pretrain.crops import CropSpec
from siesta.pretrain.encoder import Encoder, projection_mlp
from siesta.pretrain.mira import MIRA
from siesta.pretrain.swav import LARGE_CROPS

__all__ = ["MIRABarlowTwins"]


class MIRABarlowTwins(nn.Module):
    """One encoder with a projection head for each of the two losses.

    Args:
        encoder: The network to train.
        prototypes: See `MIRA`.
        target_temperature: See `MIRA`.
        hidden: See `MIRA`.
        width: See `BarlowTwins`.
        redundancy: See `BarlowTwins`.
    """

    crop_specs: ClassVar[tuple[CropSpec, ...]] = MIRA.crop_specs
    recipe: ClassVar[TrainingRecipe] = MIRA.recipe
    needs_labels: ClassVar[bool] = False

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
        self.projector = projection_mlp(encoder.features, width, width, width)
        self._width = width
        self._redundancy = redundancy

    @property
    def encoder(self) -> Encoder:
        """The network that is kept after training."""
        return self.mira.encoder

    def param_groups(self) -> list[ParamGroup]:
        """Return the groups of MIRA, and the second head."""
        return [*self.mira.param_groups(), ParamGroup(self.projector.parameters())]

    def forward(self, views: Views, fraction: float) -> PretrainOutput:
        """Compute the loss of crops, the large ones first."""
        z = self.encoder.encode_crops(views.crops)
        output = self.mira.forward_features(z, views, fraction)
        first, second = (self.projector(rows) for rows in z.chunk(len(views.crops))[:LARGE_CROPS])
        return replace(output, loss=output.loss + barlow_loss(first, second, self._redundancy) / self._width)
