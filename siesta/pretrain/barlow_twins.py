"""Barlow Twins (Zbontar et al. 2021, "Barlow Twins: Self-Supervised Learning via Redundancy Reduction").

Two crops of a picture are embedded so that each number of the one correlates with the same number of the other and
with no other number. Batches of 2048 in its paper; here the rate scales with the batch.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from siesta.pretrain import ranks
from siesta.pretrain.contract import Outcome, Part, Training, Views
from siesta.pretrain.crops import Colours, Crop
from siesta.pretrain.encoder import Encoder, projector

__all__ = ["BLURRED", "SOLARISED", "BarlowTwins", "barlow_loss"]

_JITTER = (0.4, 0.4, 0.2, 0.1)
BLURRED = Colours(_JITTER, blurs=1.0)
SOLARISED = Colours(_JITTER, blurs=0.1, solarises=0.2)
"""The two looks that a picture gets, as in BYOL (Grill et al. 2020)."""


def barlow_loss(first: Tensor, second: Tensor, redundancy: float) -> Tensor:
    """How far the correlations of two embeddings (B, D) are from one on the diagonal and zero beside it.

    Args:
        first: Of one crop, this rank's piece of the batch.
        second: Of the other.
        redundancy: Weight of what lies beside the diagonal.
    """
    number = len(first) * ranks.count()
    correlations = ranks.summed(_standardised(first, number).T @ _standardised(second, number)) / number  # (D, D)
    diagonal = correlations.diagonal()
    beside = correlations.square().sum() - diagonal.square().sum()
    return (1 - diagonal).square().sum() + redundancy * beside


def _standardised(rows: Tensor, number: int) -> Tensor:
    """Every column with mean zero and spread one over the whole batch."""
    centred = rows - ranks.summed(rows.sum(dim=0)) / number
    variance = ranks.summed(centred.square().sum(dim=0)) / number
    return centred * torch.rsqrt(variance + 1e-5)


class BarlowTwins(nn.Module):
    """The encoder with a wide projection head."""

    plan: ClassVar[tuple[Crop, ...]] = (Crop((0.08, 1.0), colours=BLURRED), Crop((0.08, 1.0), colours=SOLARISED))
    recipe: ClassVar[Training] = Training(rate=0.2, final=0.001, batch=256, warm_up=10 / 1000, vectors=0.0048 / 0.2)
    labelled: ClassVar[bool] = False

    def __init__(self, encoder: Encoder, *, width: int = 8192, redundancy: float = 0.0051) -> None:
        super().__init__()
        self.encoder = encoder
        self.projector = projector(encoder.features, width, width, width)
        self._redundancy = redundancy

    def parts(self) -> list[Part]:
        """All learn alike."""
        return [Part(self.parameters())]

    def forward(self, views: Views, _fraction: float) -> Outcome:
        """Two crops -> loss."""
        first, second = (self.projector(z) for z in self.encoder.many(views.crops).chunk(2))
        return Outcome(barlow_loss(first, second, self._redundancy), first.detach())
