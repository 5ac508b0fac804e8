"""RandAugment (Cubuk et al. 2020) with the operations and strengths of timm's `rand-m9-mstd0.5-inc1`, as DyTox uses it.

Each image gets two operations, each with probability 1/2, of a strength drawn around 9 of 10. All operations here are
in torch on pixels in 0..255; torchvision's or Pillow's may round differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["OPERATIONS", "rand_augment"]

_OPERATIONS_PER_IMAGE = 2
_PROBABILITY = 0.5
_STRENGTH, _STRENGTH_STD = 0.9, 0.05  # 9 and 0.5 of 10
_GREY = 128.0  # what affine operations fill with
_LUMA = (0.299, 0.587, 0.114)

Operation = Callable[[Tensor, float, float], Tensor]
"""(image (3, H, W) in 0..255, strength in 0..1, sign) -> the same, changed."""


def rand_augment(images: Tensor, rng: np.random.Generator) -> Tensor:
    """Apply random operations to each image: (B, 3, H, W) in 0..255 -> (B, 3, H, W)."""
    operations = list(OPERATIONS.values())
    changed = []
    for image in images:
        for chosen in rng.integers(len(operations), size=_OPERATIONS_PER_IMAGE):
            strength = float(np.clip(rng.normal(_STRENGTH, _STRENGTH_STD), 0, 1))
            sign = 1.0 if rng.random() < 0.5 else -1.0
            if rng.random() < _PROBABILITY:
                image = operations[chosen](image, strength, sign).clamp(0, 255)
        changed.append(image)
    return torch.stack(changed)


def _affine(image: Tensor, matrix: tuple[float, float, float, float], shift: tuple[float, float] = (0, 0)) -> Tensor:
    """Sample an image at `matrix` times each position plus `shift`, both in pixels from the centre."""
    _, height, width = image.shape
    a, b, c, d = matrix
    theta = torch.tensor(
        [[a, b * height / width, 2 * shift[0] / width], [c * width / height, d, 2 * shift[1] / height]],
        dtype=image.dtype,
    )
    grid = F.affine_grid(theta[None], [1, 3, height, width], align_corners=False)
    sampled = F.grid_sample(image[None] - _GREY, grid, mode="bilinear", align_corners=False)
    return sampled[0] + _GREY


def _rotate(image: Tensor, strength: float, sign: float) -> Tensor:
    angle = math.radians(30 * strength * sign)
    return _affine(image, (math.cos(angle), math.sin(angle), -math.sin(angle), math.cos(angle)))


def _blend(image: Tensor, other: Tensor, strength: float, sign: float) -> Tensor:
    """Return a mixture with 1 +- 0.9 strength of the image, timm's increasing scale."""
    factor = max(0.1, 1 + 0.9 * strength * sign)
    return other + factor * (image - other)


def _grey(image: Tensor) -> Tensor:
    """(3, H, W) -> (1, H, W)."""
    return (image * torch.tensor(_LUMA, dtype=image.dtype)[:, None, None]).sum(dim=0, keepdim=True)


def _sharpness(image: Tensor, strength: float, sign: float) -> Tensor:
    kernel = torch.ones(3, 1, 3, 3, dtype=image.dtype)
    kernel[:, :, 1, 1] = 5
    blurred = image.clone()
    blurred[:, 1:-1, 1:-1] = F.conv2d(image[None], kernel / 13, groups=3)[0]
    return _blend(image, blurred, strength, sign)


def _autocontrast(image: Tensor, _strength: float, _sign: float) -> Tensor:
    low, high = image.amin(dim=(1, 2), keepdim=True), image.amax(dim=(1, 2), keepdim=True)
    return torch.where(high > low, (image - low) * 255 / (high - low).clamp(min=1e-6), image)


def _equalize(image: Tensor, _strength: float, _sign: float) -> Tensor:
    """Spread the levels of each channel evenly, as Pillow does."""
    channels = []
    for channel in image.round().long().clamp(0, 255):
        histogram = torch.bincount(channel.flatten(), minlength=256)
        used = histogram[histogram > 0]
        step = int(used[:-1].sum()) // 255
        if step:
            levels = (torch.cumsum(histogram, 0) - histogram + step // 2) // step
            channel = levels.clamp(0, 255)[channel]
        channels.append(channel)
    return torch.stack(channels).to(image.dtype)


def _solarize_add(image: Tensor, strength: float, _sign: float) -> Tensor:
    return torch.where(image < 128, image + int(110 * strength), image)


def _posterize(image: Tensor, strength: float, _sign: float) -> Tensor:
    step = 2 ** (8 - (4 - int(4 * strength)))
    levels: Tensor = torch.div(image, step, rounding_mode="floor") * step
    return levels


OPERATIONS: Mapping[str, Operation] = {
    "autocontrast": _autocontrast,
    "equalize": _equalize,
    "invert": lambda image, _strength, _sign: 255 - image,
    "rotate": _rotate,
    "posterize": _posterize,
    "solarize": lambda image, strength, _: torch.where(image < 256 - int(256 * strength), image, 255 - image),
    "solarize_add": _solarize_add,
    "colour": lambda image, strength, sign: _blend(image, _grey(image), strength, sign),
    "contrast": lambda image, strength, sign: _blend(image, _grey(image).mean(), strength, sign),
    "brightness": lambda image, strength, sign: _blend(image, torch.zeros_like(image), strength, sign),
    "sharpness": _sharpness,
    "shear_x": lambda image, strength, sign: _affine(image, (1, 0.3 * strength * sign, 0, 1)),
    "shear_y": lambda image, strength, sign: _affine(image, (1, 0, 0.3 * strength * sign, 1)),
    "translate_x": lambda image, strength, sign: _affine(
        image, (1, 0, 0, 1), (0.45 * strength * sign * image.shape[2], 0)
    ),
    "translate_y": lambda image, strength, sign: _affine(
        image, (1, 0, 0, 1), (0, 0.45 * strength * sign * image.shape[1])
    ),
}
"""The 15 operations by name; those without a use for strength or sign ignore it."""
