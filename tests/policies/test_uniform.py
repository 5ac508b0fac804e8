"""Uniform goes through all samples before any of them repeats."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from siesta.policies import Uniform
from tests.policies.memories import draw, draw_counts, memory_of


@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=12), count=st.integers(1, 400))
def test_all_samples_are_drawn_before_any_repeats(sizes: list[int], count: int) -> None:
    memory = memory_of(sizes)
    counts = draw_counts(memory, draw(Uniform(), memory, count))
    assert counts.max() - counts.min() <= 1


def test_each_pass_has_a_different_order() -> None:
    memory = memory_of([20, 20])
    sample_ids = draw(Uniform(), memory, 80).tolist()
    assert sorted(sample_ids[:40]) == sorted(sample_ids[40:]) == sorted(memory.ids.tolist())
    assert sample_ids[:40] != sample_ids[40:] and sample_ids[:40] != memory.ids.tolist()
