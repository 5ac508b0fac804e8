"""The budget of a sleep, as updates, time or a moment."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from siesta.errors import BadInput
from siesta.sleep.budget import Budget


def test_a_budget_is_given_in_updates_minutes_or_as_a_moment() -> None:
    assert Budget.of(updates=5) == Budget(updates=5)
    assert Budget.of(minutes=2) == Budget(seconds=120)
    moment = datetime.now(UTC) + timedelta(hours=1)
    assert Budget.of(until=moment).seconds == pytest.approx(3600, abs=5)
    soon = datetime.now() + timedelta(minutes=5)
    assert 200 < (Budget.of(until=f"{soon:%H:%M}").seconds or 0) <= 300
    passed = datetime.now() - timedelta(minutes=5)
    assert (Budget.of(until=f"{passed:%H:%M}").seconds or 0) > 23 * 3600


def test_without_a_number_a_sleep_ends_by_itself() -> None:
    assert Budget.of() == Budget() and Budget().is_open
    assert not Budget(updates=1).is_open and not Budget(seconds=1).is_open


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"updates": 5, "seconds": 5.0}, "at most one budget"),
        ({"updates": 0}, "above zero"),
        ({"updates": 2.5}, "must be whole, not 2.5"),
        ({"seconds": -1.0}, "above zero"),
        ({"minutes": math.nan}, "above zero"),
        ({"until": "25:99"}, "not a time of day"),
        ({"until": datetime(2020, 1, 1)}, "2020-01-01 00:00 has passed"),
    ],
)
def test_impossible_budgets_are_refused(budget: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Budget.of(**budget)  # type: ignore[arg-type]
