"""Random crops and flips of a batch, each sample its own."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["random_crop", "random_flip"]

_RATIO = 4 / 3  # a box is at most so much wider than high, or higher than wide
_TRIES = 10


def random_crop(samples: Tensor, rng: np.random.Generator, smallest: float) -> Tensor:
    """Cuts a box out of each sample and brings it back to full size, bilinearly: (B, C, H, W) -> (B, C, H, W).

    The box covers `smallest` to all of the area, evenly, its ratio lies in 3/4..4/3, evenly on a logarithmic scale,
    and its place is random; after ten boxes that do not fit, the sample stays whole.

    Args:
        samples: Latents or pictures.
        rng: Where the boxes come from.
        smallest: Share of the area that is kept at least.
    """
    height, width = samples.shape[2:]
    cut = []
    for sample in samples:
        top, left, high, wide = _box(height, width, rng, smallest)
        box = sample[None, :, top : top + high, left : left + wide]
        cut.append(F.interpolate(box, (height, width), mode="bilinear", align_corners=False))
    return torch.cat(cut).contiguous(memory_format=torch.channels_last)


def _box(height: int, width: int, rng: np.random.Generator, smallest: float) -> tuple[int, int, int, int]:
    """Top, left, height and width of a random box."""
    for _ in range(_TRIES):
        area = height * width * rng.uniform(smallest, 1)
        ratio = math.exp(rng.uniform(-math.log(_RATIO), math.log(_RATIO)))
        wide, high = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < wide <= width and 0 < high <= height:
            return int(rng.integers(height - high + 1)), int(rng.integers(width - wide + 1)), high, wide
    return 0, 0, height, width


def random_flip(pictures: Tensor, rng: np.random.Generator) -> Tensor:
    """Mirrors every other picture or so, left to right: (B, C, H, W) -> (B, C, H, W)."""
    flipped = torch.from_numpy(rng.random(len(pictures)) < 0.5)
    return torch.where(flipped[:, None, None, None], pictures.flip(3), pictures)
