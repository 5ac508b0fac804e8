"""Max interference: what lies next to another class comes more often."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from siesta.contracts import Memory
from siesta.policies import MaxInterference, max_interference
from siesta.policies.max_interference import _distances_to_others
from tests.policies.memories import draw, embedding, memory_of, times

RNG = np.random.default_rng


def two_fans(each: int) -> tuple[Memory, npt.NDArray[np.float64]]:
    """Two classes spread over a quarter circle each, side by side; and how far each sample is from the border."""
    memory = memory_of([each, each])
    angle = RNG(1).uniform(0.02, np.pi / 2, 2 * each)
    side = np.where(memory.classes == 1, 1.0, -1.0)
    return embedding(memory, np.stack([np.cos(side * angle), np.sin(side * angle)], axis=1)), angle


def test_distances_are_those_of_all_pairs() -> None:
    memory = memory_of([9, 20, 1])
    z = RNG(2).normal(size=(30, 4))
    units = z / np.linalg.norm(z, axis=1, keepdims=True)
    cosines = np.where(memory.classes[:, None] == memory.classes, -1, units @ units.T)
    found = _distances_to_others(embedding(memory, z), RNG(0))
    assert found == pytest.approx(1 - cosines.max(axis=1), abs=1e-5)


def test_what_lies_at_the_border_comes_more_often() -> None:
    memory, angle = two_fans(200)
    picks = times(memory, draw(MaxInterference(), memory, 20_000))
    at_border = angle < np.quantile(angle, 0.2)
    assert picks[at_border].sum() / 20_000 > 0.45, "uniform would give them 0.2"
    assert picks[at_border].mean() > 4 * picks[angle > np.quantile(angle, 0.8)].mean()


def test_a_large_memory_is_compared_with_a_random_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, _ = two_fans(400)
    exact = _distances_to_others(memory, RNG(0))
    monkeypatch.setattr(max_interference, "_EXACT", 100)
    monkeypatch.setattr(max_interference, "_REFERENCE", 200)
    found = _distances_to_others(memory, RNG(0))
    assert (found >= exact - 1e-6).all() and np.corrcoef(found, exact)[0, 1] > 0.98
