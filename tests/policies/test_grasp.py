"""GRASP: from easy to hard, against the published rule drawn one sample at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from siesta.policies import Grasp
from siesta.policies.grasp import curriculum
from tests.policies.memories import assert_balanced, draw
from tests.policies.test_prototypical import spread

RNG = np.random.default_rng


def published(distances: npt.NDArray[np.float64], count: int, rng: np.random.Generator) -> list[int]:
    """The authors' rule, written out: p ~ 1 / distance, then the picked one moves away by the largest."""
    now, picks = distances.copy(), []
    for _ in range(count):
        p = 1 / (now + 1e-7)
        picks.append(int(rng.choice(len(now), p=p / p.sum())))
        now[picks[-1]] += now.max()
    return picks


def test_a_sleep_goes_from_easy_to_hard_in_every_class() -> None:
    memory, angle = spread([200, 200])
    picks = draw(Grasp(), memory, 400)
    place = np.argsort(memory.ids)[np.searchsorted(np.sort(memory.ids), picks)]
    fifths = angle[place].reshape(5, 80).mean(axis=1)
    assert fifths[0] < 0.5 < fifths[1] < fifths[4] and fifths[4] > 0.9
    assert_balanced(memory, picks)


def test_places_are_those_of_the_published_rule() -> None:
    """Mean distance of the k-th pick, over many sleeps, for half a pass: later theirs begins to repeat."""
    distances = RNG(1).uniform(0.01, 1.0, 30)
    theirs = np.mean([distances[published(distances, 15, RNG(seed))] for seed in range(800)], axis=0)
    ours = np.mean([distances[curriculum(distances, RNG(seed))(1)[0, :15]] for seed in range(800)], axis=0)
    assert np.abs(ours - theirs).max() < 0.04 and ours[-1] > 1.5 * ours[0]


def test_the_second_pass_remembers_the_first() -> None:
    """Distances after a pass are the published moves, so what came early comes early again."""
    firsts, seconds = [], []
    for seed in range(60):
        first, second = curriculum(np.full(50, 0.5), RNG(seed))(2)
        firsts.append(np.argsort(first))
        seconds.append(np.argsort(second))
    assert np.corrcoef(np.concatenate(firsts), np.concatenate(seconds))[0, 1] > 0.4


def test_one_pass_moves_as_the_published_rule_does() -> None:
    distances, rng = np.array([0.3, 0.1, 0.6]), RNG(0)
    now = distances + 1e-7
    orders = curriculum(distances, rng)
    for sample in orders(1)[0]:
        now[sample] += now.max()
    times = RNG(0)
    times.standard_exponential(3)
    expected = np.argsort(times.standard_exponential(3) * now)
    assert orders(1)[0].tolist() == expected.tolist()


@pytest.mark.parametrize("size", [1, 2])
def test_many_passes_through_few_samples(size: int) -> None:
    orders = curriculum(np.zeros(size), RNG(0))(3000)
    assert (np.sort(orders, axis=1) == np.arange(size)).all()
