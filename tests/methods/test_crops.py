"""Random crops and flips: their geometry and their distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from siesta.errors import BadInput
from siesta.methods.crops import random_box, random_crop, random_flip


@given(st.integers(1, 40), st.integers(1, 40), st.floats(0.01, 1), st.integers(0, 2**32))
def test_boxes_lie_inside_the_sample(height: int, width: int, min_area: float, seed: int) -> None:
    top, left, box_height, box_width = random_box(height, width, np.random.default_rng(seed), min_area)
    assert top >= 0 and 1 <= box_height <= height - top
    assert left >= 0 and 1 <= box_width <= width - left


def test_areas_ratios_and_places_have_the_documented_distribution() -> None:
    rng = np.random.default_rng(0)
    boxes = np.array([random_box(200, 200, rng, 0.08) for _ in range(4000)])
    top, left, high, wide = boxes.T
    whole = (high == 200) & (wide == 200)
    area, ratio = high * wide / 200**2, wide / high
    assert 0.078 < area.min() < 0.1 and area.max() > 0.95 and 0.4 < np.median(area) < 0.54
    assert 0.74 < ratio.min() < 0.77 and 1.3 < ratio.max() < 1.35 and abs(np.log(ratio).mean()) < 0.01
    free = 200 - high[~whole & (high < 200)]
    places = top[~whole & (high < 200)] / free
    assert abs(places.mean() - 0.5) < 0.02 and places.min() == 0 and places.max() == 1
    assert abs((left / np.maximum(200 - wide, 1)).mean() - 0.5) < 0.05


def test_each_sample_has_its_own_crop_resized_bilinearly() -> None:
    samples = torch.rand(3, 5, 14, 14).contiguous(memory_format=torch.channels_last)
    cropped = random_crop(samples, np.random.default_rng(3), 0.3)
    rng = np.random.default_rng(3)
    for before, after in zip(samples, cropped, strict=True):
        top, left, box_height, box_width = random_box(14, 14, rng, 0.3)
        box = before[:, top : top + box_height, left : left + box_width].contiguous()
        assert torch.allclose(F.interpolate(box[None], (14, 14), mode="bilinear", align_corners=False)[0], after)
    assert cropped.shape == samples.shape and cropped.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("side", [1, 2])
def test_the_smallest_latents_can_be_cropped(side: int) -> None:
    samples = torch.rand(4, 3, side, side)
    assert random_crop(samples, np.random.default_rng(0), 2 / 7).shape == samples.shape


def test_half_of_the_images_are_mirrored() -> None:
    images = torch.rand(400, 1, 2, 3)
    flipped = random_flip(images, np.random.default_rng(0))
    mirrored = [torch.equal(after, before.flip(2)) for before, after in zip(images, flipped, strict=True)]
    same = [torch.equal(after, before) for before, after in zip(images, flipped, strict=True)]
    assert all(one != other for one, other in zip(mirrored, same, strict=True)) and 160 < sum(mirrored) < 240


def test_tokens_cannot_be_cropped() -> None:
    with pytest.raises(BadInput, match=r"random crops need feature maps .* are tokens of shape \(5, 192\)"):
        random_crop(torch.rand(2, 5, 192), np.random.default_rng(0), 0.3)
