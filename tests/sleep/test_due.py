"""When a sleep is due, and how long it takes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siesta.sleep.due import SleepNeed
from siesta.sleep.round_limits import FEWEST_HELD_OUT, RoundLimits

SLEPT = {"updates": 1000, "seconds": 10.0}


def need(new_classes: int = 0, new_samples: int = 0, **others: Any) -> SleepNeed:
    values: dict[str, Any] = {"learned": 1000, "rehearsed": 900, "held_out": FEWEST_HELD_OUT, "last": SLEPT}
    return SleepNeed.of(new_classes, new_samples, **{**values, **others})


def test_new_classes_or_many_new_samples_make_a_sleep_due() -> None:
    assert [need(1, 1).due, need(0, 199).due, need(0, 200).due, need().due] == [True, False, True, False]
    assert not need(1, 1, learned=1, rehearsed=0, held_out=0).due, "nothing is stored"


@given(st.integers(0, 50), st.integers(0, 5000), st.integers(1, 5000))
def test_more_new_samples_never_make_it_less_due(new_classes: int, new_samples: int, more: int) -> None:
    assert need(new_classes, new_samples + more).due >= need(new_classes, new_samples).due


def test_the_time_is_that_of_one_round_to_the_ceiling_at_the_speed_of_the_last_sleep() -> None:
    limits = RoundLimits.of(900, 64)
    found = need()
    assert (found.least_updates, found.most_updates) == (limits.least_updates, limits.most_updates)
    assert found.seconds == (limits.least_updates / 100, limits.most_updates / 100)
    few = need(held_out=FEWEST_HELD_OUT - 1)
    assert few.least_updates == few.most_updates == RoundLimits.of(900, 64, judged=False).most_updates


@pytest.mark.parametrize(
    "last", [None, {}, {"updates": 5}, {"updates": "x", "seconds": 1.0}, {"updates": 5, "seconds": 0}]
)
def test_without_a_speed_the_time_is_unknown(last: dict[str, Any] | None) -> None:
    found = need(2, 30, last=last)
    assert found.seconds is None and found.as_dict()["least_seconds"] is None
    assert "how long it takes is unknown before the first sleep" in found.summary()


def test_the_summary_says_why_and_how_long() -> None:
    assert need(1, 200).summary().startswith("due: 1 new class and 200 new samples since the last one; it takes about ")
    assert need(0, 1).summary().startswith("not due: 0 new classes and 1 new sample since the last one; ")
    assert need(rehearsed=0).summary() == "nothing to rehearse yet"
    fast = need(last={"updates": 10**9, "seconds": 1.0})
    assert fast.summary().endswith("it takes about 1 s")
    slow = need(last={"updates": 1, "seconds": 1.0})
    assert slow.summary().endswith(" min to 4.0 h") or " h" in slow.summary()
