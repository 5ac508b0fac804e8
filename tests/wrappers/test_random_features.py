"""Random Fourier features approximate a Gaussian kernel, in any order of columns."""

from __future__ import annotations

import numpy as np
import pytest

from siesta.errors import BadInput
from siesta.wrappers.random_features import RandomFeatures


def test_inner_products_are_those_of_a_gaussian_kernel() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 5))
    found = RandomFeatures(20_000, gamma=0.3, seed=1).of_array(rows)
    squares = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    assert np.abs(found @ found.T - np.exp(-0.3 * squares)).max() < 0.05


def test_a_row_of_an_array_is_a_dict_with_numbers_of_columns() -> None:
    features = RandomFeatures(64, gamma=0.3, seed=1)
    row = np.array([[0.5, -1.0, 2.0]])
    assert np.allclose(features.of_array(row)[0], features.of_dict({"2": 2.0, "0": 0.5, "1": -1.0}))
    assert np.array_equal(features.of_dict({"a": 0, "b": 1}), features.of_dict({"b": True}))


@pytest.mark.parametrize(("count", "gamma"), [(0, 1.0), (8, 0.0), (8, float("inf")), (8, float("nan"))])
def test_wrong_options_are_refused(count: int, gamma: float) -> None:
    with pytest.raises(BadInput, match="give positive numbers"):
        RandomFeatures(count, gamma, 0)
