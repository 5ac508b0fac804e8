"""Min rehearsal: the neglected first, and level in the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from siesta.contracts import Memory
from siesta.policies import MinRehearsal
from tests.policies.memories import draw, memory_of, times


def rehearsed(counts: list[int]) -> Memory:
    return replace(memory_of([len(counts)]), rehearsed=np.array(counts, dtype=np.int32))


def test_what_was_never_rehearsed_comes_before_all_else() -> None:
    memory = rehearsed([9] * 50 + [0] * 10)
    picks = draw(MinRehearsal(), memory, 90)
    assert times(memory, picks).tolist() == [0] * 50 + [9] * 10, "uniform would spend 75 of these on the others"


@given(st.lists(st.integers(0, 6), min_size=1, max_size=30), st.integers(1, 200))
def test_every_pick_is_one_of_the_least_rehearsed_so_far(counts: list[int], count: int) -> None:
    memory = rehearsed(counts)
    now = dict(zip(memory.ids.tolist(), counts, strict=True))
    for sample in draw(MinRehearsal(), memory, count).tolist():
        assert now[sample] == min(now.values())
        now[sample] += 1
