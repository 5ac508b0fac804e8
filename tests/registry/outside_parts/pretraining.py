"""A pre-training method: the features of a crop predict its mean colour."""

from __future__ import annotations

from typing import ClassVar

from torch import nn
from torch.nn import functional as F

from siesta.pretrain.contract import ParamGroup, PretrainOutput, TrainingRecipe, Views
from siesta.pretrain.crops import CropSpec
from siesta.pretrain.encoder import Encoder

__all__ = ["MeanColour"]


class MeanColour(nn.Module):
    """The encoder with a linear layer for the mean of each channel."""

    crop_specs: ClassVar[tuple[CropSpec, ...]] = (CropSpec((0.08, 1.0), colours=None),)
    recipe: ClassVar[TrainingRecipe] = TrainingRecipe(lr=0.05)
    needs_labels: ClassVar[bool] = False

    def __init__(self, encoder: Encoder, *, weight: float = 1.0) -> None:
        super().__init__()
        self.encoder = encoder
        self.output = nn.Linear(encoder.features, 3)
        self._weight = weight

    def param_groups(self) -> list[ParamGroup]:
        """Return one group with all parameters."""
        return [ParamGroup(self.parameters())]

    def forward(self, views: Views, _fraction: float) -> PretrainOutput:
        """Compute the loss of one crop."""
        (crop,) = views.crops
        z = self.encoder(crop)
        return PretrainOutput(self._weight * F.mse_loss(self.output(z), crop.mean(dim=(2, 3)) / 255), z.detach())
