from __future__ import annotations

import numpy as np

from siesta.contracts import Normalization
from siesta.images import ImageInput, normalize, read_image

NORMALIZATION = Normalization((1, 2, 3), (4, 5, 6))


def test_images_are_read_and_scaled() -> None:
    images = ImageInput(32, NORMALIZATION)
    noise = np.random.default_rng(0).integers(0, 255, (40, 50, 3), np.uint8)
    pixels = images.read(noise)
    assert np.array_equal(pixels, read_image(noise, 32)) and images.read(pixels) is pixels
    batch = images.batch([pixels, pixels])
    assert batch.shape == (2, *images.shape) and np.array_equal(batch, normalize([pixels, pixels], NORMALIZATION))
