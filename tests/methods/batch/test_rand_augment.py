"""RandAugment's operations beside Pillow's, and how they are drawn."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from siesta.methods.batch.rand_augment import OPERATIONS, rand_augment


def picture(size: int = 24, seed: int = 0) -> npt.NDArray[np.uint8]:
    """Return a smooth image (S, S, 3)."""
    coarse = np.random.default_rng(seed).integers(20, 236, (4, 4, 3)).astype(np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC))


def applied(name: str, image: npt.NDArray[np.uint8], strength: float, sign: float = 1.0) -> npt.NDArray[np.float32]:
    tensor = torch.from_numpy(image.copy()).permute(2, 0, 1).float()
    changed: npt.NDArray[np.float32] = OPERATIONS[name](tensor, strength, sign).clamp(0, 255).permute(1, 2, 0).numpy()
    return changed


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("invert", lambda image: ImageOps.invert(image)),
        ("equalize", lambda image: ImageOps.equalize(image)),
        ("autocontrast", lambda image: ImageOps.autocontrast(image)),
        ("posterize", lambda image: ImageOps.posterize(image, 2)),
        ("solarize", lambda image: ImageOps.solarize(image, 128)),
        ("colour", lambda image: ImageEnhance.Color(image).enhance(1.45)),
        ("contrast", lambda image: ImageEnhance.Contrast(image).enhance(1.45)),
        ("brightness", lambda image: ImageEnhance.Brightness(image).enhance(1.45)),
        ("sharpness", lambda image: ImageEnhance.Sharpness(image).enhance(1.45)),
    ],
)
def test_colours_are_those_of_pillow(name: str, expected: object) -> None:
    image = picture()
    wanted = np.asarray(expected(Image.fromarray(image)), dtype=np.float32)  # type: ignore[operator]
    assert np.abs(applied(name, image, 0.5) - wanted).max() <= 2.0, "but for rounding"


def test_solarize_add_brightens_dark_pixels() -> None:
    image = picture()
    assert np.allclose(applied("solarize_add", image, 0.5), np.clip(np.where(image < 128, image + 55.0, image), 0, 255))


@pytest.mark.parametrize(("name", "axis"), [("translate_x", 1), ("translate_y", 0)])
def test_a_translation_moves_pixels(name: str, axis: int) -> None:
    image = picture(20)
    moved = applied(name, image, 3 / (0.45 * 20))  # by three pixels
    wanted = np.roll(image, -3, axis).astype(np.float32)
    (wanted[:, -3:] if axis == 1 else wanted[-3:])[...] = 128
    assert np.allclose(moved, wanted, atol=1e-2)


@pytest.mark.parametrize("name", ["rotate", "shear_x", "shear_y"])
def test_affine_operations_are_those_of_pillow_inside(name: str) -> None:
    image = picture(33)
    strength, centre = 0.4, 16
    if name == "rotate":
        wanted = Image.fromarray(image).rotate(-30 * strength, Image.Resampling.BILINEAR, fillcolor=(128, 128, 128))
    else:
        slope = 0.3 * strength
        matrix = (1, slope, -slope * 16.5, 0, 1, 0) if name == "shear_x" else (1, 0, 0, slope, 1, -slope * 16.5)
        wanted = Image.fromarray(image).transform(
            (33, 33), Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR, fillcolor=(128, 128, 128)
        )
    inside = slice(centre - 8, centre + 9)
    difference = np.abs(applied(name, image, strength) - np.asarray(wanted, np.float32))[inside, inside]
    opposite = np.abs(applied(name, image, strength, -1.0) - np.asarray(wanted, np.float32))[inside, inside]
    assert difference.mean() < 1.5 < opposite.mean()


def test_half_of_two_operations_an_image_are_applied() -> None:
    images = torch.from_numpy(np.stack([picture(seed=seed) for seed in range(200)])).permute(0, 3, 1, 2).float()
    changed = rand_augment(images, np.random.default_rng(0))
    unchanged = (changed == images).flatten(1).all(dim=1).float().mean()
    assert changed.shape == images.shape
    assert 0.15 < float(unchanged) < 0.35, "a quarter gets none"
    assert torch.equal(changed, rand_augment(images, np.random.default_rng(0)))
