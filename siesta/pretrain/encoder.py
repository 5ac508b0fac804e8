"""The network that is pre-trained, with its input scaling, and the projection head on top of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from siesta.contracts import Normalization

__all__ = ["Encoder", "projection_mlp"]


class Encoder(nn.Module):
    """A whole network that takes pixels in 0..255.

    Attributes:
        layers: The layers from the stem to z.
        features: Length of z.
        early_layers: How many of the layers lie below the network's default cut.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, layers: nn.Sequential, features: int, normalization: Normalization, early_layers: int) -> None:
        super().__init__()
        self.layers = layers
        self.features = features
        self.early_layers = early_layers
        for name in ("mean", "std"):
            self.register_buffer(name, torch.tensor(getattr(normalization, name)).view(1, 3, 1, 1), persistent=False)

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, 3, S, S) in 0..255 -> z (B, D)."""
        scaled = (pixels - self.mean) / self.std
        z: Tensor = self.layers(scaled.contiguous(memory_format=torch.channels_last))
        return z

    def encode_crops(self, crops: Sequence[Tensor]) -> Tensor:
        """Return z of all crops, crop after crop: (len(crops) * B, D). Neighbours of equal size share a pass."""
        runs: list[list[Tensor]] = []
        for crop in crops:
            if runs and runs[-1][0].shape == crop.shape:
                runs[-1].append(crop)
            else:
                runs.append([crop])
        return torch.cat([self(torch.cat(run)) for run in runs])


def projection_mlp(*widths: int) -> nn.Sequential:
    """Return linear layers from the first width to the last, with batch norm and ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths[:-1]):
        layers += [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-2], widths[-1]))
