"""Boxes of crops, and their colours compared with Pillow."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from torch import Tensor

from siesta.pretrain.crops import (
    DRAWS_PER_CROP,
    ColourDistortion,
    CropSpec,
    Draw,
    crop_box,
    cut_crops,
)
from siesta.pretrain.swav import SwAV

SIDE = 64
SWAV = ColourDistortion()


def picture(seed: int = 0) -> Image.Image:
    """Return a picture of smooth colours without extreme values."""
    small = np.random.default_rng(seed).integers(70, 180, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(small).resize((80, 60), Image.Resampling.BICUBIC)


def draws(**places: float) -> npt.NDArray[np.float64]:
    """Return random numbers at which only the given distortions apply."""
    numbers = np.full((1, 1, DRAWS_PER_CROP), 0.5)
    for place in (Draw.FLIP, Draw.APPLY_JITTER, Draw.APPLY_GREY, Draw.APPLY_BLUR, Draw.APPLY_SOLARISE):
        numbers[..., place] = 0.999
    names: dict[str, int] = {
        "flip": Draw.FLIP,
        "jitters": Draw.APPLY_JITTER,
        "brightness": Draw.JITTER,
        "contrast": Draw.JITTER + 1,
        "saturation": Draw.JITTER + 2,
        "hue": Draw.JITTER + 3,
        "greys": Draw.APPLY_GREY,
        "blurs": Draw.APPLY_BLUR,
        "radius": Draw.BLUR_RADIUS,
        "solarises": Draw.APPLY_SOLARISE,
    }
    for name, value in places.items():
        numbers[..., names[name]] = value
    return numbers


def whole(numbers: npt.NDArray[Any], colours: ColourDistortion | None = SWAV, size: int = SIDE) -> Tensor:
    (found,) = cut_crops([picture()], [CropSpec((0.9, 0.9), colours=colours)], size, numbers)
    return found[0]


def as_picture(pixels: Tensor) -> Image.Image:
    return Image.fromarray(pixels.permute(1, 2, 0).round().byte().numpy())


def close(found: Tensor, expected: Image.Image, by: float = 3.0) -> bool:
    other = torch.from_numpy(np.asarray(expected).copy()).permute(2, 0, 1).float()
    return bool((found - other).abs().max() < by)


PLAIN = {"jitters": 0.0, "brightness": 0.5, "contrast": 0.5, "saturation": 0.5, "hue": 0.5}


def test_without_distortions_colours_do_not_change() -> None:
    torch.testing.assert_close(whole(draws()), whole(draws(), None), atol=1e-3, rtol=0)
    torch.testing.assert_close(whole(draws(**PLAIN)), whole(draws(), None), atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    ("name", "enhance"),
    [("brightness", ImageEnhance.Brightness), ("contrast", ImageEnhance.Contrast), ("saturation", ImageEnhance.Color)],
)
@pytest.mark.parametrize("number", [0.3, 0.7])
def test_jitter_matches_pillow(name: str, enhance: Any, number: float) -> None:
    factor = 0.2 + 1.6 * number  # a change of at most 0.8
    expected = enhance(as_picture(whole(draws(), None))).enhance(factor)
    assert close(whole(draws(**{**PLAIN, name: number})), expected)


def test_hue_rotation_keeps_luma() -> None:
    before, after = whole(draws(), None), whole(draws(**{**PLAIN, "hue": 1.0}))
    weights = torch.tensor([0.299, 0.587, 0.114])[:, None, None]
    torch.testing.assert_close((after * weights).sum(dim=0), (before * weights).sum(dim=0), atol=0.1, rtol=0)
    assert float((after - before).abs().mean()) > 5


def test_grey_blur_solarisation_and_flip_match_pillow() -> None:
    plain = as_picture(whole(draws(), None))
    assert close(whole(draws(greys=0.0)), ImageOps.grayscale(plain).convert("RGB"))
    solarises = ColourDistortion(solarise_probability=0.2)
    assert close(whole(draws(solarises=0.0), solarises), ImageOps.solarize(plain), by=255) and close(
        whole(draws(solarises=0.0), solarises)[:, :1, :1], ImageOps.solarize(plain).crop((0, 0, 1, 1))
    )
    assert close(whole(draws(flip=0.0)), ImageOps.mirror(plain))
    large = whole(draws(blurs=0.0, radius=1.0), size=224)  # where a radius is what it says
    blurred = as_picture(whole(draws(), None, size=224)).filter(ImageFilter.GaussianBlur(2.0))
    assert close(large[:, 8:-8, 8:-8], blurred.crop((8, 8, 216, 216)))


def test_boxes_are_inside_with_the_given_area_and_aspect_ratio() -> None:
    rng = np.random.default_rng(0)
    for width, height in ((80, 60), (60, 80), (500, 20)):
        areas = []
        for _ in range(300):
            left, top, right, bottom = crop_box(width, height, rng.random(DRAWS_PER_CROP), (0.05, 0.3))
            assert 0 <= left < right <= width + 1e-9 and 0 <= top < bottom <= height + 1e-9
            assert 0.74 < (right - left) / (bottom - top) < 1.34
            areas.append((right - left) * (bottom - top) / (width * height))
        if width + height == 140:
            assert 0.05 <= min(areas) < 0.06 and 0.29 < max(areas) <= 0.3 + 1e-9
    assert crop_box(60, 60, np.full(DRAWS_PER_CROP, 0.999), (1.0, 1.0)) == (0, 0, 60, 60)  # none of ten fits


def test_the_crops_of_swav_are_those_of_the_paper() -> None:
    sides = [crop.side(224) for crop in SwAV.crop_specs]
    assert sides == [224, 224, 128, 128, 128, 128, 128, 128]
    assert [crop.scale for crop in SwAV.crop_specs] == [(0.3, 1.0)] * 2 + [(0.05, 0.3)] * 6


def test_crops_do_not_depend_on_the_rest_of_the_batch() -> None:
    numbers = np.random.default_rng(0).random((3, len(SwAV.crop_specs), DRAWS_PER_CROP))
    pictures = [picture(seed) for seed in range(3)]
    together = cut_crops(pictures, SwAV.crop_specs, 32, numbers)
    for index in range(3):
        alone = cut_crops([pictures[index]], SwAV.crop_specs, 32, numbers[index : index + 1])
        for many, one in zip(together, alone, strict=True):
            torch.testing.assert_close(many[index], one[0])
    assert all(float(crop.min()) >= 0 and float(crop.max()) <= 255.01 for crop in together)
