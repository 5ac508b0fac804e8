"""Max interference prefers samples next to another class."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from siesta.contracts import Memory
from siesta.policies import MaxInterference
from siesta.policies.max_interference import distances_to_other_classes
from tests.policies.memories import draw, draw_counts, embedding, memory_of

RNG = np.random.default_rng


def neighbouring_arcs(each: int) -> tuple[Memory, npt.NDArray[np.float64]]:
    """Two classes on neighbouring quarter circles, and each sample's angle from the border between them."""
    memory = memory_of([each, each])
    angle = RNG(1).uniform(0.02, np.pi / 2, 2 * each)
    side = np.where(memory.classes == 1, 1.0, -1.0)
    return embedding(memory, np.stack([np.cos(side * angle), np.sin(side * angle)], axis=1)), angle


def test_distances_equal_those_of_all_pairs() -> None:
    memory = memory_of([9, 20, 1])
    z = RNG(2).normal(size=(30, 4))
    units = z / np.linalg.norm(z, axis=1, keepdims=True)
    cosines = np.where(memory.classes[:, None] == memory.classes, -1, units @ units.T)
    found = distances_to_other_classes(embedding(memory, z), RNG(0))
    assert found == pytest.approx(1 - cosines.max(axis=1), abs=1e-5)


def test_samples_at_the_border_are_drawn_more_often() -> None:
    memory, angle = neighbouring_arcs(200)
    counts = draw_counts(memory, draw(MaxInterference(), memory, 20_000))
    at_border = angle < np.quantile(angle, 0.2)
    assert counts[at_border].sum() / 20_000 > 0.45, "uniform draws would give them 0.2"
    assert counts[at_border].mean() > 4 * counts[angle > np.quantile(angle, 0.8)].mean()


def test_a_large_memory_is_compared_with_a_random_part_of_it() -> None:
    memory, _ = neighbouring_arcs(400)
    exact = distances_to_other_classes(memory, RNG(0))
    approximate = distances_to_other_classes(memory, RNG(0), exact_limit=100, references=200)
    assert (approximate >= exact - 1e-6).all() and np.corrcoef(approximate, exact)[0, 1] > 0.98
