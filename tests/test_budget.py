"""Budgets as people give them, and the end of the cycle."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from siesta.budget import Budget, Clock, one_cycle
from siesta.errors import BadInput


def test_one_cycle_ends_where_time_ends() -> None:
    assert one_cycle(0.0) == pytest.approx(1 / 25) and one_cycle(0.3) == 1.0
    assert one_cycle(1.0) == one_cycle(1.7) == pytest.approx(1 / 25e4)


def test_budgets_are_understood() -> None:
    assert Budget.of(updates=5) == Budget(updates=5)
    assert Budget.of(minutes=2) == Budget(seconds=120)
    moment = datetime.now(UTC) + timedelta(hours=1)
    assert Budget.of(until=moment).seconds == pytest.approx(3600, abs=5)
    soon = datetime.now() + timedelta(minutes=5)
    assert 200 < (Budget.of(until=f"{soon:%H:%M}").seconds or 0) <= 300
    passed = datetime.now() - timedelta(minutes=5)
    assert (Budget.of(until=f"{passed:%H:%M}").seconds or 0) > 23 * 3600


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({}, "exactly one of"),
        ({"updates": 5, "seconds": 5.0}, "exactly one of"),
        ({"updates": 0}, "above zero"),
        ({"updates": 2.5}, "is whole"),
        ({"seconds": -1.0}, "above zero"),
        ({"minutes": math.nan}, "above zero"),
        ({"until": "25:99"}, "not a time of day"),
        ({"until": datetime(2020, 1, 1)}, "over already"),
    ],
)
def test_impossible_budgets_are_refused(budget: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Budget.of(**budget)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seconds", "planning", "first", "step"), [(20, 0, 0.5, 0.5), (20, 3, 4, 0.5), (600, 60, 5, 1.5)]
)
def test_a_time_budget_is_kept_and_its_cycle_whole_whatever_the_start_costs(
    monkeypatch: pytest.MonkeyPatch, seconds: float, planning: float, first: float, step: float
) -> None:
    """On a clock of our own: planning and a slow first batch take their time, the cycle still runs to its end."""
    now = 100.0
    monkeypatch.setattr("siesta.budget.time.monotonic", lambda: now)
    clock = Clock(Budget(seconds=seconds, start=now), batch_size=8)
    now += planning
    shares: list[float] = []
    while True:
        clock.begin()
        shares.append(clock.share())
        now += step if len(shares) > 1 else first
        clock.tick(8, 8)
        if clock.over():
            break
    assert 100 + seconds - step <= now <= 100 + seconds
    assert shares[0] == pytest.approx(1 / 25) and max(shares) > 0.95 and shares[-1] < 0.02
    left = clock.progress(loss=1.0, rate=0.1).seconds_left
    assert left == pytest.approx(100 + seconds - now)
