"""Min rehearsal: the neglected come more often, nothing is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from siesta.contracts import Memory
from siesta.policies import MinRehearsal
from tests.policies.memories import draw, memory_of, times


def rehearsed(counts: list[int]) -> Memory:
    return replace(memory_of([len(counts)]), rehearsed=np.array(counts, dtype=np.int32))


def test_samples_come_by_how_little_they_were_rehearsed() -> None:
    memory = rehearsed([9] * 50 + [4] * 50 + [0] * 10)
    picks = times(memory, draw(MinRehearsal(), memory, 60_000)).reshape(-1, 10).sum(axis=1) / 60_000
    weights = np.repeat([0.1, 0.2, 1.0], [5, 5, 1])
    assert picks == pytest.approx(weights / weights.sum(), rel=0.1), "uniform would give each ten 0.09"


def test_where_all_are_level_it_is_uniform() -> None:
    memory = rehearsed([3] * 40)
    picks = times(memory, draw(MinRehearsal(), memory, 40_000))
    assert picks == pytest.approx(1000, rel=0.15)
