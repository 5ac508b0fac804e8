from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from siesta.codecs import Float16, relative_error

CODEC = Float16()


@given(arrays(np.float32, (3, 1, 5), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_no_number_is_off_by_more_than_its_share_of_the_largest(latents: np.ndarray) -> None:
    decoded = CODEC.decode(CODEC.encode(latents), (1, 5))
    largest = np.abs(latents.astype(np.float64)).max(axis=(1, 2), keepdims=True)
    assert (np.abs(decoded.astype(np.float64) - latents) <= largest * 2.0**-11 + 1e-44).all()


def test_bytes_and_error_of_an_embedding() -> None:
    latents = np.random.default_rng(0).normal(size=(8, 1, 384)).astype(np.float32)
    assert CODEC.code_bytes((1, 384)) == CODEC.encode(latents).shape[1] == 4 + 2 * 384
    assert relative_error(CODEC, latents) == pytest.approx(0, abs=1e-6)
    assert relative_error(CODEC, np.zeros((1, 1, 4), np.float32)) == 0
