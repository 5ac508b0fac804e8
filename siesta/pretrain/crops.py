"""Random crops of pictures with distorted colours, each a function of one row of random numbers.

Pillow cuts and resizes in one call; colours and blur are matrices, for a whole batch at once: brightness, contrast,
saturation, hue and grey are one 3 x 3 matrix and an offset a crop, a Gaussian blur one matrix a side. Measured on
eight crops of a picture (2 x 96 + 6 x 55 px, one thread): 1.7 ms, all in Pillow 6.0 ms, with kornia 8.7 ms. The price:
colours are clipped once, at the end, and not after each change; hue is turned in YIQ space.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

__all__ = ["DRAWS", "Colours", "Crop", "cut_crops", "multi_crop"]

Floats = npt.NDArray[np.float64]

_TRIES = 10
_RATIO = 4 / 3  # a box is at most so much wider than high, or higher than wide
_GREY = np.array([0.299, 0.587, 0.114])
_TO_YIQ = np.array([_GREY, [0.595716, -0.274453, -0.321263], [0.211456, -0.522591, 0.311135]])
_FROM_YIQ = np.linalg.inv(_TO_YIQ)
_BLUR = (0.1, 2.0)  # its radius, in pixels of a crop of 224
_PAPER_SIZE = 224

_BOX, _PLACE, _FLIP, _JITTERS, _JITTER, _GREYS, _BLURS, _RADIUS, _SOLARISES = 0, 20, 22, 23, 24, 28, 29, 30, 31
DRAWS = 32
"""Random numbers in 0..1 that a crop takes."""


@dataclass(frozen=True)
class Colours:
    """How colours are distorted; chances are in 0..1.

    Attributes:
        jitter: Largest change of brightness, contrast, saturation (as a factor) and hue (as part of a turn).
        jitters: Chance of that.
        greys: Chance that colours go.
        blurs: Chance of a Gaussian blur.
        solarises: Chance that the bright half is inverted.
    """

    jitter: tuple[float, float, float, float] = (0.8, 0.8, 0.8, 0.2)
    jitters: float = 0.8
    greys: float = 0.2
    blurs: float = 0.5
    solarises: float = 0.0


@dataclass(frozen=True)
class Crop:
    """One crop of a picture.

    Attributes:
        scale: Smallest and largest share of the picture's area.
        size: Its side as a share of the image size that training is for.
        colours: What happens to its colours; None leaves them.
    """

    scale: tuple[float, float]
    size: float = 1.0
    colours: Colours | None = Colours()

    def side(self, image_size: int) -> int:
        """In pixels."""
        return round(self.size * image_size)


def multi_crop(*large: Crop, small: Crop, count: int) -> tuple[Crop, ...]:
    """A plan of some large crops and a number of small ones."""
    return (*large, *[small] * count)


def cut_crops(pictures: Sequence[Image.Image], plan: Sequence[Crop], image_size: int, draws: Floats) -> list[Tensor]:
    """Crops (B, 3, s, s) of a batch, one tensor for each in the plan; pixels in 0..255.

    Args:
        pictures: RGB.
        plan: What to cut.
        image_size: Side of a crop of size one.
        draws: Random numbers in 0..1, (B, len(plan), DRAWS).
    """
    made = []
    for place, crop in enumerate(plan):
        numbers, side = draws[:, place], crop.side(image_size)
        cut = np.stack([_cut(*pair, crop, side) for pair in zip(pictures, numbers, strict=True)])
        batch = torch.from_numpy(cut).permute(0, 3, 1, 2).float()
        made.append(batch if crop.colours is None else _coloured(batch, crop.colours, numbers))
    return made


def _cut(picture: Image.Image, numbers: Floats, crop: Crop, side: int) -> npt.NDArray[np.uint8]:
    box = _box(picture.width, picture.height, numbers, crop.scale)
    cut = np.asarray(picture.resize((side, side), Image.Resampling.BICUBIC, box=box))
    return cut[:, ::-1] if numbers[_FLIP] < 0.5 else cut


def _box(width: int, height: int, numbers: Floats, scale: tuple[float, float]) -> tuple[float, float, float, float]:
    """Left, top, right and bottom: the first of ten boxes that fits, or else the largest in the middle."""
    low, high = scale
    for first, second in numbers[_BOX : _BOX + 2 * _TRIES].reshape(_TRIES, 2):
        area, ratio = width * height * (low + (high - low) * first), _RATIO ** (2 * second - 1)
        wide, tall = math.sqrt(area * ratio), math.sqrt(area / ratio)
        if wide <= width and tall <= height:
            left, top = (width - wide) * numbers[_PLACE], (height - tall) * numbers[_PLACE + 1]
            return left, top, left + wide, top + tall
    wide, tall = min(width, height * _RATIO), min(height, width * _RATIO)
    left, top = (width - wide) / 2, (height - tall) / 2
    return left, top, left + wide, top + tall


def _coloured(batch: Tensor, colours: Colours, numbers: Floats) -> Tensor:
    """(B, 3, s, s) in 0..255 -> the same, distorted by (B, DRAWS) random numbers."""
    side = batch.shape[-1]
    matrix, grey_share = _colour_matrices(colours, numbers)
    grey = torch.einsum("c,bchw->b", torch.from_numpy(_GREY).float(), batch) / side**2
    offset = (grey_share * grey)[:, None, None].expand(-1, 3, side**2)
    out = torch.baddbmm(offset, matrix, batch.flatten(2)).clamp_(0, 255).view_as(batch)
    blurred = np.flatnonzero(numbers[:, _BLURS] < colours.blurs)
    if len(blurred):
        low, high = (radius * side / _PAPER_SIZE for radius in _BLUR)
        out[blurred] = _blurred(out[blurred], low + (high - low) * numbers[blurred, _RADIUS])
    solarised = np.flatnonzero(numbers[:, _SOLARISES] < colours.solarises)
    if len(solarised):
        bright = out[solarised]
        out[solarised] = torch.where(bright >= 128, 255 - bright, bright)
    return out


def _colour_matrices(colours: Colours, numbers: Floats) -> tuple[Tensor, Tensor]:
    """What happens to a pixel: a matrix (B, 3, 3), and the share (B,) of its picture's mean grey that is added."""
    changed = (numbers[:, _JITTERS] < colours.jitters)[:, None]
    largest = np.array(colours.jitter[:3])
    low, high = np.maximum(1 - largest, 0), 1 + largest
    amounts = low + (high - low) * numbers[:, _JITTER : _JITTER + 3]
    brightness, contrast, saturation = np.where(changed, amounts, 1.0).T
    turn = np.where(changed[:, 0], colours.jitter[3] * (2 * numbers[:, _JITTER + 3] - 1), 0.0)
    grey = np.broadcast_to(_GREY, (3, 3))
    mixed = saturation[:, None, None] * np.eye(3) + (1 - saturation)[:, None, None] * grey
    matrix = _FROM_YIQ @ _turns(2 * np.pi * turn) @ _TO_YIQ @ mixed
    matrix[numbers[:, _GREYS] < colours.greys] = grey
    # every row of these matrices sums to one, so a grey offset stays what it is
    scaled = matrix * (brightness * contrast)[:, None, None]
    return torch.from_numpy(scaled).float(), torch.from_numpy(brightness * (1 - contrast)).float()


def _turns(angles: Floats) -> Floats:
    """Rotations (B, 3, 3) of I and Q; Y stays."""
    turns = np.zeros((len(angles), 3, 3))
    turns[:, 0, 0] = 1
    turns[:, 1, 1] = turns[:, 2, 2] = np.cos(angles)
    turns[:, 2, 1] = np.sin(angles)
    turns[:, 1, 2] = -turns[:, 2, 1]
    return turns


def _blurred(batch: Tensor, radii: Floats) -> Tensor:
    """Gaussian blur of each picture (B, 3, s, s) with its own radius (B,); at the edges, of what is there."""
    places = torch.arange(batch.shape[-1])
    squares = ((places[:, None] - places) ** 2).float()
    weights = torch.exp(-squares / (2 * torch.from_numpy(radii).float()[:, None, None] ** 2))
    weights = (weights / weights.sum(dim=2, keepdim=True))[:, None]  # (B, 1, s, s)
    return weights @ batch @ weights.transpose(2, 3)
