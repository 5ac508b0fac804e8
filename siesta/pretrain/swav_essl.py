"""SwAV + E-SSL (Dangovski et al. 2022, "Equivariant Contrastive Learning").

A further small crop of each image is rotated by all four quarter turns, and a head on z predicts the rotation: while
the other crops make features invariant, these keep them sensitive to orientation. Head and weight are those that its
authors use with SimCLR; they published none for SwAV.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.pretrain.contract import ParamGroup, PretrainOutput, TrainingRecipe, Views
from siesta.pretrain.crops import CropSpec
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.swav import SMALL, SwAV

__all__ = ["SwAVESSL", "quarter_turns"]

_QUARTER_TURNS = 4
_BOTTLENECK = 128


def quarter_turns(crops: Tensor) -> tuple[Tensor, Tensor]:
    """Return crops (B, 3, s, s) rotated by 0, 90, 180 and 270 degrees, (4 * B, 3, s, s), and their quarter turns."""
    turned = torch.cat([torch.rot90(crops, turn, (2, 3)) for turn in range(_QUARTER_TURNS)])
    return turned, torch.arange(_QUARTER_TURNS, device=crops.device).repeat_interleave(len(crops))


class SwAVESSL(nn.Module):
    """SwAV with a head that predicts rotations.

    Args:
        encoder: The network to train.
        prototypes: See `SwAV`.
        queue: See `SwAV`.
        hidden: Width of the hidden layers of both heads.
        weight: Weight of the rotation loss.
    """

    crop_specs: ClassVar[tuple[CropSpec, ...]] = (*SwAV.crop_specs, SMALL)
    recipe: ClassVar[TrainingRecipe] = SwAV.recipe
    needs_labels: ClassVar[bool] = False

    def __init__(
        self,
        encoder: Encoder,
        *,
        prototypes: int = 1000,
        queue: int = 384,
        hidden: int = 2048,
        weight: float = 0.4,
    ) -> None:
        super().__init__()
        self.swav = SwAV(encoder, prototypes=prototypes, queue=queue, hidden=hidden)
        sizes = (encoder.features, hidden, hidden)
        layers = [
            layer
            for inputs, outputs in pairwise(sizes)
            for layer in (nn.Linear(inputs, outputs), nn.LayerNorm(outputs), nn.ReLU())
        ]
        self.predictor = nn.Sequential(
            *layers, nn.Linear(hidden, _BOTTLENECK), nn.LayerNorm(_BOTTLENECK), nn.Linear(_BOTTLENECK, _QUARTER_TURNS)
        )
        self._weight = weight

    @property
    def encoder(self) -> Encoder:
        """The network that is kept after training."""
        return self.swav.encoder

    def param_groups(self) -> list[ParamGroup]:
        """Return the groups of SwAV, and the rotation head."""
        return [*self.swav.param_groups(), ParamGroup(self.predictor.parameters())]

    def forward(self, views: Views, fraction: float) -> PretrainOutput:
        """Compute the loss of SwAV's crops and of a further small crop."""
        output: PretrainOutput = self.swav(replace(views, crops=views.crops[:-1]), fraction)
        turned, turns = quarter_turns(views.crops[-1])
        loss = F.cross_entropy(self.predictor(self.swav.encoder(turned)), turns)
        return replace(output, loss=output.loss + self._weight * loss)
