"""The clock of a sleep, on a fake time."""

from __future__ import annotations

import pytest

from siesta.sleep.budget import Budget
from siesta.sleep.clock import Clock
from siesta.sleep.schedule import SCHEDULES, make_schedule


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("batches", [1, 3, 50])
def test_an_update_budget_follows_its_schedule_batch_by_batch(name: str, batches: int) -> None:
    clock = Clock(Budget(updates=8 * batches), 8, make_schedule(name))
    for step in range(batches):
        assert not clock.is_over()
        clock.start_batch()
        assert clock.lr_share() == SCHEDULES[name](step / batches, 1 / batches)
        clock.end_batch(8, 8)
        assert clock.progress(loss=1.0, lr=0.1).fraction == pytest.approx((step + 1) / batches)
    assert clock.is_over()


def test_samples_that_were_evicted_are_spent_but_are_no_updates() -> None:
    clock = Clock(Budget(updates=16), 8)
    for _ in range(2):
        clock.start_batch()
        clock.end_batch(updates=3, spent=8)
    assert clock.is_over() and clock.progress(loss=1.0, lr=0.1).updates == 6


@pytest.mark.parametrize(
    ("seconds", "planning", "first", "step"), [(20, 0, 0.5, 0.5), (20, 3, 4, 0.5), (600, 60, 5, 1.5)]
)
def test_a_time_budget_is_kept_and_its_schedule_complete_whatever_the_start_costs(
    monkeypatch: pytest.MonkeyPatch, seconds: float, planning: float, first: float, step: float
) -> None:
    """Planning and a slow first batch take their time, and the schedule still reaches its end."""
    now = 100.0
    monkeypatch.setattr("siesta.sleep.clock.time.monotonic", lambda: now)
    clock = Clock(Budget(seconds=seconds, start=now), batch_size=8)
    now += planning
    seen: list[float] = []
    while True:
        clock.start_batch()
        seen.append(clock.lr_share())
        now += step if len(seen) > 1 else first
        clock.end_batch(8, 8)
        if clock.is_over():
            break
    assert 100 + seconds - step <= now <= 100 + seconds
    assert seen[0] == pytest.approx(1 / 25) and max(seen) > 0.95 and seen[-1] < 0.02
    left = clock.progress(loss=1.0, lr=0.1).seconds_left
    assert left == pytest.approx(100 + seconds - now)
