"""The draws that policies share, against probabilities worked out independently."""

from __future__ import annotations

from itertools import islice, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.policies.draws import weighted, weighted_orders

RNG = np.random.default_rng
PRIORITIES = np.array([4.0, 0.5, 0.0, 1.5, 2.0])


def test_weighted_draws_come_as_often_as_their_priority_says() -> None:
    picks = np.concatenate(list(islice(weighted(np.arange(5) + 10, PRIORITIES, RNG(0)), 4)))
    expected = PRIORITIES / PRIORITIES.sum()
    found = np.bincount(picks - 10, minlength=5) / len(picks)
    assert found == pytest.approx(expected, abs=4 * np.sqrt(0.25 / len(picks))) and found[2] == 0


def test_weighted_draws_do_not_hang_together() -> None:
    picks = next(weighted(np.arange(2), np.ones(2), RNG(1)))
    assert np.corrcoef(picks[:-1], picks[1:])[0, 1] == pytest.approx(0, abs=0.02)


def test_weighted_orders_have_the_probability_of_drawing_one_after_the_other() -> None:
    """Every order of three, against the product of p / (what is left) written out."""
    priorities = np.array([3.0, 2.0, 1.0])
    found = weighted_orders(priorities, RNG(2))(40_000)
    for order in permutations(range(3)):
        first, second, third = priorities[list(order)]
        expected = first / 6 * second / (second + third)
        assert (found == order).all(axis=1).mean() == pytest.approx(expected, abs=0.01)


def test_weighted_orders_agree_with_numpys_choice() -> None:
    """Where NumPy draws without replacement, one sample at a time, the mean places are the same."""
    priorities, rng = np.array([5.0, 3.0, 1.0, 0.5, 0.5]), RNG(3)
    p = priorities / priorities.sum()
    theirs = np.stack([rng.choice(5, 5, replace=False, p=p, shuffle=False) for _ in range(4000)])
    ours = weighted_orders(priorities, rng)(4000)
    assert np.argsort(ours, axis=1).mean(axis=0) == pytest.approx(np.argsort(theirs, axis=1).mean(axis=0), abs=0.1)


def test_a_priority_of_zero_comes_last_or_never() -> None:
    assert (weighted_orders(PRIORITIES, RNG(4))(50)[:, -1] == 2).all()


@given(st.lists(st.sampled_from([0.0, 1e-300, 1e-7, 1.0, 1e7, 1e300]), min_size=1, max_size=20), st.integers(1, 4))
def test_any_priorities_will_do(priorities: list[float], passes: int) -> None:
    values = np.array(priorities)
    orders = weighted_orders(values, RNG(5))(passes)
    assert (np.sort(orders, axis=1) == np.arange(len(values))).all()
    assert set(next(weighted(np.arange(len(values)), values, RNG(6))).tolist()) <= set(range(len(values)))
