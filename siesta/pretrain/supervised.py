"""Supervised training of the whole network, the upper bound in the SIESTA paper's table of pre-training methods.

The paper gives no details. Here it is softmax over a linear layer, random crops and flips, and SGD with a learning rate
that suits the paper's network at a batch size of 64.
"""

from __future__ import annotations

from typing import ClassVar

from torch import nn
from torch.nn import functional as F

from siesta.pretrain.contract import ParamGroup, PretrainOutput, TrainingRecipe, Views
from siesta.pretrain.crops import CropSpec
from siesta.pretrain.encoder import Encoder

__all__ = ["Supervised"]


class Supervised(nn.Module):
    """The encoder with a linear classifier."""

    crop_specs: ClassVar[tuple[CropSpec, ...]] = (CropSpec((0.08, 1.0), colours=None),)
    recipe: ClassVar[TrainingRecipe] = TrainingRecipe(lr=0.2, weight_decay=1e-5, larc=False)
    needs_labels: ClassVar[bool] = True

    def __init__(self, encoder: Encoder, *, classes: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.output = nn.Linear(encoder.features, classes)

    def param_groups(self) -> list[ParamGroup]:
        """Return one group with all parameters."""
        return [ParamGroup(self.parameters())]

    def forward(self, views: Views, _fraction: float) -> PretrainOutput:
        """Compute the loss of one crop."""
        (crop,) = views.crops
        return PretrainOutput(F.cross_entropy(self.output(self.encoder(crop)), views.labels))
