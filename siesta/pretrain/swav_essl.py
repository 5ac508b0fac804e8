"""SwAV + E-SSL (Dangovski et al. 2022, "Equivariant Contrastive Learning").

One more small crop of each picture is shown in all four quarter turns, and a head on top of z has to say which turn it
is: features that other crops make blind to everything keep an eye for what is upright. Head and weight as its authors
have them with SimCLR; with SwAV they published none.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.pretrain.contract import Outcome, Part, Training, Views
from siesta.pretrain.crops import Crop
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.swav import SMALL, SwAV

__all__ = ["SwAVESSL", "quarter_turns"]

TURNS = 4


def quarter_turns(crops: Tensor) -> tuple[Tensor, Tensor]:
    """Crops (B, 3, s, s) turned by 0, 90, 180 and 270 degrees: (4 * B, 3, s, s), and how often each was turned."""
    turned = torch.cat([torch.rot90(crops, turn, (2, 3)) for turn in range(TURNS)])
    return turned, torch.arange(TURNS, device=crops.device).repeat_interleave(len(crops))


class SwAVESSL(nn.Module):
    """SwAV, and a head that predicts rotations."""

    plan: ClassVar[tuple[Crop, ...]] = (*SwAV.plan, SMALL)
    recipe: ClassVar[Training] = SwAV.recipe
    labelled: ClassVar[bool] = False

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
        self.predictor = nn.Sequential(*layers, nn.Linear(hidden, 128), nn.LayerNorm(128), nn.Linear(128, TURNS))
        self._weight = weight

    @property
    def encoder(self) -> Encoder:
        """What is kept."""
        return self.swav.encoder

    def parts(self) -> list[Part]:
        """SwAV's, and the predictor."""
        return [*self.swav.parts(), Part(self.predictor.parameters())]

    def forward(self, views: Views, fraction: float) -> Outcome:
        """SwAV's crops and one more -> loss."""
        found: Outcome = self.swav(replace(views, crops=views.crops[:-1]), fraction)
        turned, turns = quarter_turns(views.crops[-1])
        loss = F.cross_entropy(self.predictor(self.swav.encoder(turned)), turns)
        return replace(found, loss=found.loss + self._weight * loss)
