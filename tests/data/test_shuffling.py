"""Shuffles that never change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.data.shuffling import shuffled
from siesta.errors import BadInput
from siesta.rng import Purpose

FIRST = Purpose.PRETRAIN_ORDER
OTHER = Purpose.PRETRAIN_CROPS


def test_the_order_of_a_seed_never_changes() -> None:
    assert shuffled(np.arange(10), 0, FIRST).tolist() == [7, 4, 5, 1, 9, 8, 6, 2, 0, 3]


@given(st.integers(0, 50), st.integers(0, 2**40))
def test_a_shuffle_is_a_permutation(count: int, seed: int) -> None:
    values = np.arange(count) * 3
    assert sorted(shuffled(values, seed, FIRST).tolist()) == values.tolist()


def test_seed_purpose_and_index_give_different_orders() -> None:
    keys: list[tuple[int, Purpose, *tuple[int, ...]]] = [(0, FIRST), (1, FIRST), (0, OTHER), (1, OTHER), (0, FIRST, 3)]
    assert len({tuple(shuffled(np.arange(30), *key).tolist()) for key in keys}) == 5


def test_every_position_is_equally_likely() -> None:
    first = np.bincount([shuffled(np.arange(4), seed, FIRST)[0] for seed in range(2000)], minlength=4)
    assert (abs(first - 500) < 5 * np.sqrt(2000 * 0.25 * 0.75)).all()


def test_negative_seeds_are_refused() -> None:
    with pytest.raises(BadInput, match="seed must be 0 or more"):
        shuffled(np.arange(3), -1, FIRST)
