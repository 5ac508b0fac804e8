"""Barlow Twins (Zbontar et al. 2021, "Barlow Twins: Self-Supervised Learning via Redundancy Reduction").

Two crops of an image are embedded so that each dimension of one embedding correlates with the same dimension of the
other and with no other dimension. The paper trains with batches of 2048; here the learning rate scales with the batch.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from siesta.pretrain import distributed
from siesta.pretrain.contract import ParamGroup, PretrainOutput, TrainingRecipe, Views
from siesta.pretrain.crops import ColourDistortion, CropSpec
from siesta.pretrain.encoder import Encoder, projection_mlp

__all__ = ["BLURRED", "SOLARISED", "BarlowTwins", "barlow_loss"]

_JITTER = (0.4, 0.4, 0.2, 0.1)
_EPSILON = 1e-5

BLURRED = ColourDistortion(_JITTER, blur_probability=1.0)
SOLARISED = ColourDistortion(_JITTER, blur_probability=0.1, solarise_probability=0.2)
"""The two asymmetric distortions of BYOL (Grill et al. 2020)."""


def barlow_loss(first: Tensor, second: Tensor, redundancy: float) -> Tensor:
    """Squared distance of the cross-correlation matrix of two embeddings (B, D) from the identity.

    Args:
        first: Embeddings of one crop, this rank's part of the batch.
        second: Embeddings of the other crop.
        redundancy: Weight of the off-diagonal elements.
    """
    count = len(first) * distributed.world_size()
    products = _standardised(first, count).T @ _standardised(second, count)
    correlations = distributed.all_reduce_sum(products) / count  # (D, D)
    diagonal = correlations.diagonal()
    off_diagonal = correlations.square().sum() - diagonal.square().sum()
    return (1 - diagonal).square().sum() + redundancy * off_diagonal


def _standardised(rows: Tensor, count: int) -> Tensor:
    """Rows whose columns have mean zero and variance one over the batch of all ranks."""
    centred = rows - distributed.all_reduce_sum(rows.sum(dim=0)) / count
    variance = distributed.all_reduce_sum(centred.square().sum(dim=0)) / count
    return centred * torch.rsqrt(variance + _EPSILON)


class BarlowTwins(nn.Module):
    """The encoder with a wide projection head.

    Args:
        encoder: The network to train.
        width: Width of all layers of the projection head, and length of an embedding.
        redundancy: Weight of the off-diagonal elements in the loss.
    """

    crop_specs: ClassVar[tuple[CropSpec, ...]] = (
        CropSpec((0.08, 1.0), colours=BLURRED),
        CropSpec((0.08, 1.0), colours=SOLARISED),
    )
    recipe: ClassVar[TrainingRecipe] = TrainingRecipe(
        lr=0.2, final_lr_factor=0.001, batch_size=256, warmup=10 / 1000, vector_lr_factor=0.0048 / 0.2
    )
    needs_labels: ClassVar[bool] = False

    def __init__(self, encoder: Encoder, *, width: int = 8192, redundancy: float = 0.0051) -> None:
        super().__init__()
        self.encoder = encoder
        self.projector = projection_mlp(encoder.features, width, width, width)
        self._redundancy = redundancy

    def param_groups(self) -> list[ParamGroup]:
        """Return one group with all parameters."""
        return [ParamGroup(self.parameters())]

    def forward(self, views: Views, _fraction: float) -> PretrainOutput:
        """Compute the loss of two crops."""
        first, second = (self.projector(z) for z in self.encoder.encode_crops(views.crops).chunk(2))
        return PretrainOutput(barlow_loss(first, second, self._redundancy), first.detach())
