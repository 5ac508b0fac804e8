"""Random changes of images, drawn for each of a batch separately: crop or shift, flip, brightness, RandAugment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from siesta.contracts import Normalization
from siesta.methods.batch.rand_augment import rand_augment
from siesta.methods.crops import random_crop, random_flip

__all__ = ["Augment", "random_brightness", "random_shift"]

_MIN_AREA = 0.08  # of a random resized crop, the usual value
_SHIFT = 1 / 8  # of the side: 4 of 32 pixels, as usual on CIFAR


@dataclass(frozen=True)
class Augment:
    """What is done to images before a network is trained on them.

    Attributes:
        kind: "crop_flip" crops 8 % to all of the area and resizes it, "shift_flip" shifts by up to an eighth of the
            side with black borders; both flip. "rand_augment" does as "crop_flip" and applies RandAugment. "none" does
            nothing.
        brightness: Largest relative change of brightness.
        normalization: Of the images.
    """

    kind: str
    brightness: float
    normalization: Normalization

    def __call__(self, images: Tensor, rng: np.random.Generator) -> Tensor:
        """Normalised images (B, 3, S, S) -> the same, changed; channels-last in memory."""
        if self.kind == "none" and not self.brightness:
            return images
        mean, std = (torch.tensor(values).reshape(1, 3, 1, 1) for values in self._pixels())
        pixels = images * std + mean  # black is zero
        if self.kind == "shift_flip":
            pixels = random_flip(random_shift(pixels, rng, round(_SHIFT * pixels.shape[-1])), rng)
        elif self.kind != "none":
            pixels = random_flip(random_crop(pixels, rng, _MIN_AREA), rng)
        if self.kind == "rand_augment":
            pixels = rand_augment(pixels, rng)
        if self.brightness:
            pixels = random_brightness(pixels, rng, self.brightness)
        return ((pixels - mean) / std).contiguous(memory_format=torch.channels_last)

    def _pixels(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return self.normalization.mean, self.normalization.std


def random_shift(images: Tensor, rng: np.random.Generator, most: int) -> Tensor:
    """Shift each image by up to `most` pixels in both directions, with black borders: (B, C, H, W) -> (B, C, H, W)."""
    height, width = images.shape[2:]
    padded = F.pad(images, (most, most, most, most))
    offsets = rng.integers(2 * most + 1, size=(len(images), 2)).tolist()
    return torch.stack(
        [image[:, top : top + height, left : left + width] for image, (top, left) in zip(padded, offsets, strict=True)]
    )


def random_brightness(images: Tensor, rng: np.random.Generator, most: float) -> Tensor:
    """Multiply the pixels (0..255) of each image by a factor in 1 - most..1 + most: (B, C, H, W) -> (B, C, H, W)."""
    factors = torch.from_numpy(rng.uniform(1 - most, 1 + most, len(images))).to(images.dtype)
    return (images * factors[:, None, None, None]).clamp(0, 255)
