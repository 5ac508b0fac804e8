"""Balanced uniform draws equally many samples of rare and of frequent classes."""

from __future__ import annotations

import pytest

from siesta.policies import BalancedUniform, Uniform
from tests.policies.memories import classes_of, draw, memory_of


def test_rare_classes_are_drawn_as_often_as_frequent_ones() -> None:
    memory = memory_of([900, 90, 10])
    balanced, uniform = (
        float((classes_of(memory, draw(policy, memory, 300)) == 7).mean()) for policy in (BalancedUniform(), Uniform())
    )
    assert balanced == pytest.approx(1 / 3, abs=0.01) and uniform < 0.05


def test_the_classes_of_a_round_come_in_random_order() -> None:
    memory = memory_of([50] * 4)
    rounds = classes_of(memory, draw(BalancedUniform(), memory, 160)).reshape(-1, 4)
    assert {tuple(sorted(row)) for row in rounds.tolist()} == {(1, 4, 7, 10)}
    assert len({tuple(row) for row in rounds.tolist()}) > 10
