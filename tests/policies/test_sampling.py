"""Shared sampling against probabilities that are computed independently."""

from __future__ import annotations

from itertools import islice, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.policies.sampling import weighted_draws, weighted_passes

RNG = np.random.default_rng
PRIORITIES = np.array([4.0, 0.5, 0.0, 1.5, 2.0])


def test_frequencies_of_weighted_draws_are_proportional_to_priorities() -> None:
    sample_ids = np.concatenate(list(islice(weighted_draws(np.arange(5) + 10, PRIORITIES, RNG(0)), 4)))
    expected = PRIORITIES / PRIORITIES.sum()
    found = np.bincount(sample_ids - 10, minlength=5) / len(sample_ids)
    assert found == pytest.approx(expected, abs=4 * np.sqrt(0.25 / len(sample_ids))) and found[2] == 0


def test_weighted_draws_are_independent() -> None:
    sample_ids = next(weighted_draws(np.arange(2), np.ones(2), RNG(1)))
    assert np.corrcoef(sample_ids[:-1], sample_ids[1:])[0, 1] == pytest.approx(0, abs=0.02)


def test_weighted_passes_have_the_probability_of_successive_draws() -> None:
    """Every order of three samples against the product of p / (sum of the priorities left)."""
    priorities = np.array([3.0, 2.0, 1.0])
    found = weighted_passes(priorities, RNG(2))(40_000)
    for order in permutations(range(3)):
        first, second, third = priorities[list(order)]
        expected = first / 6 * second / (second + third)
        assert (found == order).all(axis=1).mean() == pytest.approx(expected, abs=0.01)


def test_weighted_passes_agree_with_choice_of_numpy() -> None:
    """The mean places are those of NumPy drawing without replacement."""
    priorities, rng = np.array([5.0, 3.0, 1.0, 0.5, 0.5]), RNG(3)
    p = priorities / priorities.sum()
    expected = np.stack([rng.choice(5, 5, replace=False, p=p, shuffle=False) for _ in range(4000)])
    actual = weighted_passes(priorities, rng)(4000)
    assert np.argsort(actual, axis=1).mean(axis=0) == pytest.approx(np.argsort(expected, axis=1).mean(axis=0), abs=0.1)


def test_a_priority_of_zero_comes_last_in_a_pass() -> None:
    assert (weighted_passes(PRIORITIES, RNG(4))(50)[:, -1] == 2).all()


@given(st.lists(st.sampled_from([0.0, 1e-300, 1e-7, 1.0, 1e7, 1e300]), min_size=1, max_size=20), st.integers(1, 4))
def test_extreme_priorities_give_valid_draws(priorities: list[float], passes: int) -> None:
    values = np.array(priorities)
    orders = weighted_passes(values, RNG(5))(passes)
    assert (np.sort(orders, axis=1) == np.arange(len(values))).all()
    assert set(next(weighted_draws(np.arange(len(values)), values, RNG(6))).tolist()) <= set(range(len(values)))
