"""What is trained: a whole network with its scaling, and the head that methods put on top of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from siesta.contracts import Scaling

__all__ = ["Encoder", "projector"]


class Encoder(nn.Module):
    """A network that takes pixels as they are.

    Attributes:
        layers: From stem to z.
        features: Length of z.
        early: How many of the layers lie below the network's usual cut.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, layers: nn.Sequential, features: int, scaling: Scaling, early: int) -> None:
        super().__init__()
        self.layers, self.features, self.early = layers, features, early
        for name in ("mean", "std"):
            self.register_buffer(name, torch.tensor(getattr(scaling, name)).view(1, 3, 1, 1), persistent=False)

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, 3, S, S) in 0..255 -> z (B, D)."""
        scaled = (pixels - self.mean) / self.std
        z: Tensor = self.layers(scaled.contiguous(memory_format=torch.channels_last))
        return z

    def many(self, crops: Sequence[Tensor]) -> Tensor:
        """Features of several crops, crop after crop: (len(crops) * B, D). Neighbours of one size go in together."""
        runs: list[list[Tensor]] = []
        for crop in crops:
            if runs and runs[-1][0].shape == crop.shape:
                runs[-1].append(crop)
            else:
                runs.append([crop])
        return torch.cat([self(torch.cat(run)) for run in runs])


def projector(*widths: int) -> nn.Sequential:
    """Linear layers from the first width to the last, batch norm and ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths[:-1]):
        layers += [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-2], widths[-1]))
