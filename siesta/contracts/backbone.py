"""A network cut in two, and what depends on the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from siesta.contracts.arrays import LatentShape

if TYPE_CHECKING:  # the command line's help imports contracts, and must not load torch
    from torch import nn

__all__ = ["Backbone", "Normalization", "SleepDefaults"]


@dataclass(frozen=True)
class Normalization:
    """The input scaling of a backbone: `(pixel - mean) / std` for pixels in 0..255, one value per channel."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]


@dataclass(frozen=True)
class SleepDefaults:
    """Training values that depend on the network.

    Attributes:
        lr: Maximum learning rate of the last layer for a batch of 64; it scales linearly with the batch size.
        layer_decay: Factor on the learning rate for each layer below the last.
        scale: Initial 1 / temperature of the head.
        dropout: Probability of dropping an element of z during sleep.
    """

    lr: float
    layer_decay: float
    scale: float
    dropout: float


@dataclass(frozen=True)
class Backbone:
    """A network cut into two parts.

    Attributes:
        name: Its key in `BACKBONES`.
        cut: The number of layers below the cut.
        bottom: H, frozen: (B, 3, S, S) -> Z (B, d, r, s) or (B, N, d).
        top: G, one module per layer from low to high, trained during sleep: Z -> z (B, D).
        features: D, the length of z.
        normalization: The input scaling that `bottom` expects.
        defaults: Training values for this network.
        ignored: Entries of the weights file that the network has no place for, such as an output layer.
    """

    name: str
    cut: int
    bottom: nn.Sequential
    top: nn.Sequential
    features: int
    normalization: Normalization
    defaults: SleepDefaults
    ignored: tuple[str, ...] = ()

    def latent_shape(self, image_size: int) -> LatentShape:
        """Return the shape (d, r, s) or (N, d) of Z for square images of `image_size` pixels."""
        import torch

        with torch.no_grad():
            latents = self.bottom(torch.zeros(1, 3, image_size, image_size))
        return tuple(latents.shape[1:])
