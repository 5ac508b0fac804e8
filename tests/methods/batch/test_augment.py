"""Random changes of images."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from siesta.contracts import Normalization
from siesta.methods.batch.augment import Augment, random_brightness, random_shift

PLAIN = Normalization((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
CIFAR = Normalization((129.3, 124.1, 112.4), (68.2, 65.4, 70.4))


def pixels(count: int = 4, size: int = 8) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (count, 3, size, size))).float()


def test_a_shift_is_a_window_of_the_padded_image() -> None:
    images = pixels(50)
    shifted = random_shift(images, np.random.default_rng(1), 2).numpy()
    padded = np.pad(images.numpy(), ((0, 0), (0, 0), (2, 2), (2, 2)))
    windows = [(i, j) for i in range(5) for j in range(5)]
    places = [
        [w for w in windows if np.array_equal(padded[n, :, w[0] : w[0] + 8, w[1] : w[1] + 8], shifted[n])]
        for n in range(50)
    ]
    assert all(len(found) == 1 for found in places)
    assert len({found[0] for found in places}) > 15, "all windows are drawn"


def test_brightness_multiplies_and_clips() -> None:
    images = pixels()
    brighter = random_brightness(images, np.random.default_rng(2), 0.5).numpy()
    factors = np.random.default_rng(2).uniform(0.5, 1.5, 4)
    assert np.allclose(brighter, np.clip(images.numpy() * factors[:, None, None, None], 0, 255), atol=1e-4)


@pytest.mark.parametrize("kind", ["crop_flip", "shift_flip", "rand_augment"])
@pytest.mark.parametrize("brightness", [0.0, 0.25])
def test_every_kind_keeps_shape_and_range_and_depends_on_the_rng(kind: str, brightness: float) -> None:
    augment = Augment(kind, brightness, CIFAR)
    mean, std = (torch.tensor(values).reshape(1, 3, 1, 1) for values in (CIFAR.mean, CIFAR.std))
    images = (pixels(size=32) - mean) / std
    changed = augment(images, np.random.default_rng(0))
    assert changed.shape == images.shape and changed.is_contiguous(memory_format=torch.channels_last)
    back = changed * std + mean
    assert float(back.min()) >= -1e-3 and float(back.max()) <= 255 + 1e-3
    assert torch.equal(augment(images, np.random.default_rng(0)), changed)
    assert not torch.equal(augment(images, np.random.default_rng(1)), changed)


def test_no_kind_changes_nothing() -> None:
    images = pixels()
    assert Augment("none", 0.0, PLAIN)(images, np.random.default_rng(0)) is images
    darker = Augment("none", 0.5, PLAIN)(images, np.random.default_rng(2))
    assert torch.allclose(darker, random_brightness(images, np.random.default_rng(2), 0.5))
