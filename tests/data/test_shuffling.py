"""Shuffles that never change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.data.shuffling import shuffled
from siesta.errors import BadInput


def test_a_seed_s_order_is_the_same_for_ever() -> None:
    assert shuffled(np.arange(10), 0, 1).tolist() == [7, 4, 5, 1, 9, 8, 6, 2, 0, 3]


@given(st.integers(0, 50), st.integers(0, 2**40))
def test_nothing_is_lost(count: int, seed: int) -> None:
    values = np.arange(count) * 3
    assert sorted(shuffled(values, seed, 1).tolist()) == values.tolist()


def test_seed_and_purpose_both_count() -> None:
    orders = {tuple(shuffled(np.arange(30), *key).tolist()) for key in ((0, 1), (1, 1), (0, 2), (1, 2), (0, 1, 3))}
    assert len(orders) == 5


def test_every_place_is_as_likely() -> None:
    first = np.bincount([shuffled(np.arange(4), seed, 7)[0] for seed in range(2000)], minlength=4)
    assert (abs(first - 500) < 5 * np.sqrt(2000 * 0.25 * 0.75)).all()


def test_seeds_are_not_negative() -> None:
    with pytest.raises(BadInput, match="seed is 0 or more"):
        shuffled(np.arange(3), -1)
