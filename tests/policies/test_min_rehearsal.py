"""Min rehearsal prefers samples that were rehearsed least."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from siesta.contracts import Memory
from siesta.policies import MinRehearsal
from tests.policies.memories import draw, draw_counts, memory_of


def rehearsed(counts: list[int]) -> Memory:
    return replace(memory_of([len(counts)]), rehearsed=np.array(counts, dtype=np.int32))


def test_frequencies_are_those_of_one_over_one_plus_the_count() -> None:
    memory = rehearsed([9] * 50 + [4] * 50 + [0] * 10)
    counts = draw_counts(memory, draw(MinRehearsal(), memory, 60_000)).reshape(-1, 10).sum(axis=1) / 60_000
    weights = np.repeat([0.1, 0.2, 1.0], [5, 5, 1])
    assert counts == pytest.approx(weights / weights.sum(), rel=0.1), "uniform draws would give each ten 0.09"


def test_equal_counts_give_uniform_draws() -> None:
    memory = rehearsed([3] * 40)
    counts = draw_counts(memory, draw(MinRehearsal(), memory, 40_000))
    assert counts == pytest.approx(1000, rel=0.15)
