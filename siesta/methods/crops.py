"""Random crops and flips of a batch, drawn for each sample separately."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from siesta.codecs.latents import is_map
from siesta.errors import BadInput

__all__ = ["random_box", "random_crop", "random_flip"]

_MAX_ASPECT_RATIO = 4 / 3  # of the longer side of a box to the shorter one
_ATTEMPTS = 10


def random_crop(samples: Tensor, rng: np.random.Generator, min_area: float) -> Tensor:
    """Cut a random box out of each sample and resize it to full size, bilinearly: (B, C, H, W) -> (B, C, H, W).

    Tokens are refused: they carry their position, so that a crop of them is no image at another scale.

    Args:
        samples: Latents or images.
        rng: Source of the boxes, see `random_box`.
        min_area: Smallest share of the area that is kept.
    """
    if not is_map(samples.shape[1:]):
        raise BadInput(
            "random crops need feature maps (d, r, s), and the latents of this backbone are tokens of shape "
            f"{tuple(samples.shape[1:])}: leave out cropping, or use another backbone"
        )
    height, width = samples.shape[2:]
    crops = []
    for sample in samples:
        top, left, box_height, box_width = random_box(height, width, rng, min_area)
        box = sample[None, :, top : top + box_height, left : left + box_width]
        crops.append(F.interpolate(box, (height, width), mode="bilinear", align_corners=False))
    return torch.cat(crops).contiguous(memory_format=torch.channels_last)


def random_box(height: int, width: int, rng: np.random.Generator, min_area: float) -> tuple[int, int, int, int]:
    """Return top, left, height and width of a random box.

    Its share of the area is uniform in `min_area`..1, its aspect ratio log-uniform in 3/4..4/3 and its place uniform.
    If ten such boxes do not fit, the box is the whole.
    """
    for _ in range(_ATTEMPTS):
        area = height * width * rng.uniform(min_area, 1)
        ratio = math.exp(rng.uniform(-math.log(_MAX_ASPECT_RATIO), math.log(_MAX_ASPECT_RATIO)))
        box_width, box_height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < box_width <= width and 0 < box_height <= height:
            top = int(rng.integers(height - box_height + 1))
            left = int(rng.integers(width - box_width + 1))
            return top, left, box_height, box_width
    return 0, 0, height, width


def random_flip(images: Tensor, rng: np.random.Generator) -> Tensor:
    """Mirror each image left to right with probability 1/2: (B, C, H, W) -> (B, C, H, W)."""
    flipped = torch.from_numpy(rng.random(len(images)) < 0.5)
    return torch.where(flipped[:, None, None, None], images.flip(3), images)
