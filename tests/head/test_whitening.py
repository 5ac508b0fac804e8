"""The whitening matrix against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from siesta.head.whitening import whiten


@pytest.mark.parametrize("width", [1, 127, 128, 300])
def test_it_makes_the_covariance_the_identity(width: int) -> None:
    samples = np.random.default_rng(width).normal(size=(2 * width + 3, width))
    covariance = samples.T @ samples / len(samples) + 0.1 * np.eye(width)
    whitening = np.tril(covariance).astype(np.float32)
    whiten(whitening)
    np.testing.assert_array_equal(whitening, np.tril(whitening))
    np.testing.assert_allclose(whitening @ covariance @ whitening.T, np.eye(width), atol=1e-4)


def test_what_is_not_finite_gives_no_numbers() -> None:
    matrix = np.diag(np.array([1, np.nan], np.float32))
    whiten(matrix)
    assert np.isnan(matrix).all()
