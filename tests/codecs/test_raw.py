"""The raw codec loses nothing."""

from __future__ import annotations

import numpy as np

from siesta.codecs import Raw, relative_error
from siesta.contracts import Normalization

PLAIN = Normalization(mean=(0.0,) * 3, std=(1.0,) * 3)


def test_every_byte_is_restored() -> None:
    codec = Raw.from_normalization(Normalization(mean=(120.0, 110.0, 100.0), std=(60.0, 55.0, 50.0)))
    codes = np.tile(np.arange(256, dtype=np.uint8), 3).reshape(1, -1)
    latents = codec.decode(codes, (3, 16, 16))
    assert np.array_equal(codec.encode(latents), codes)
    assert latents[0, 1, 0, 0] == np.float32(-2)
    assert relative_error(codec, latents) < 1e-10


def test_a_sample_takes_one_byte_for_each_pixel_and_channel() -> None:
    assert Raw.from_normalization(PLAIN).code_bytes((3, 224, 224)) == 150_528


def test_pixels_are_rounded_and_limited_to_a_byte() -> None:
    pixels = np.array([-3.0, 7.6, 300.0], np.float32).reshape(1, 3, 1, 1)
    assert Raw.from_normalization(PLAIN).encode(pixels).tolist() == [[0, 8, 255]]
