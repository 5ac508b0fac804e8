"""GRASP against the published rule, drawn one sample at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from siesta.policies import Grasp
from siesta.policies.grasp import curriculum_passes
from tests.policies.memories import assert_balanced, draw
from tests.policies.test_prototypical import radial_memory

RNG = np.random.default_rng


def published(distances: npt.NDArray[np.float64], count: int, rng: np.random.Generator) -> list[int]:
    """The published rule: p ~ 1 / distance, then the largest distance is added to that of the sample drawn."""
    distances = distances.copy()
    drawn = []
    for _ in range(count):
        p = 1 / (distances + 1e-7)
        drawn.append(int(rng.choice(len(distances), p=p / p.sum())))
        distances[drawn[-1]] += distances.max()
    return drawn


def test_a_sleep_goes_from_easy_to_hard_in_every_class() -> None:
    memory, angle = radial_memory([200, 200])
    sample_ids = draw(Grasp(), memory, 400)
    positions = np.argsort(memory.ids)[np.searchsorted(np.sort(memory.ids), sample_ids)]
    fifths = angle[positions].reshape(5, 80).mean(axis=1)
    assert fifths[0] < 0.5 < fifths[1] < fifths[4] and fifths[4] > 0.9
    assert_balanced(memory, sample_ids)


def test_distances_rise_as_by_the_published_rule() -> None:
    """The mean distance of the k-th draw over many sleeps, for half a pass: then the published rule repeats samples."""
    distances = RNG(1).uniform(0.01, 1.0, 30)
    expected = np.mean([distances[published(distances, 15, RNG(seed))] for seed in range(800)], axis=0)
    actual = np.mean([distances[curriculum_passes(distances, RNG(seed))(1)[0, :15]] for seed in range(800)], axis=0)
    assert np.abs(actual - expected).max() < 0.04 and actual[-1] > 1.5 * actual[0]


def test_the_second_pass_resembles_the_first() -> None:
    """The published additions keep the order of a pass, so early samples come early again."""
    firsts, seconds = [], []
    for seed in range(60):
        first, second = curriculum_passes(np.full(50, 0.5), RNG(seed))(2)
        firsts.append(np.argsort(first))
        seconds.append(np.argsort(second))
    assert np.corrcoef(np.concatenate(firsts), np.concatenate(seconds))[0, 1] > 0.4


def test_distances_after_a_pass_are_those_of_the_published_rule() -> None:
    distances, rng = np.array([0.3, 0.1, 0.6]), RNG(0)
    moved = distances + 1e-7
    passes = curriculum_passes(distances, rng)
    for sample in passes(1)[0]:
        moved[sample] += moved.max()
    same_rng = RNG(0)
    same_rng.standard_exponential(3)
    expected = np.argsort(same_rng.standard_exponential(3) * moved)
    assert passes(1)[0].tolist() == expected.tolist()


@pytest.mark.parametrize("size", [1, 2])
def test_many_passes_through_few_samples_stay_finite(size: int) -> None:
    orders = curriculum_passes(np.zeros(size), RNG(0))(3000)
    assert (np.sort(orders, axis=1) == np.arange(size)).all()
