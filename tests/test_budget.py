"""Budgets as people give them, and how the rate runs over them."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
import torch

from siesta.budget import SCHEDULES, Budget, Clock, cosine, make_schedule, one_cycle, steps
from siesta.errors import BadInput


def test_one_cycle_ends_where_time_ends() -> None:
    assert one_cycle(0.0) == pytest.approx(1 / 25) and one_cycle(0.3) == 1.0
    assert one_cycle(1.0) == one_cycle(1.7) == pytest.approx(1 / 25e4)


def shares(name: str, batches: int) -> list[float]:
    clock, seen = Clock(Budget(updates=8 * batches), 8, make_schedule(name)), []
    for _ in range(batches):
        clock.begin()
        seen.append(clock.share())
        clock.tick(8, 8)
    assert clock.over()
    return seen


@pytest.mark.parametrize("batches_an_epoch", [1, 3, 7, 100, 641])
def test_steps_drop_at_epochs_15_30_and_45_of_50_exactly(batches_an_epoch: int) -> None:
    seen = shares("steps", 50 * batches_an_epoch)
    expected = [0.1 ** (epoch // 15) for epoch in range(50) for _ in range(batches_an_epoch)]
    assert seen == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("batches_an_epoch", [1, 4])
def test_cosine_is_torchs_after_a_straight_warm_up(batches_an_epoch: int) -> None:
    """600 epochs: 5 that rise, then torch's CosineAnnealingLR over the rest."""
    rise, fall = 5 * batches_an_epoch, 595 * batches_an_epoch
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    annealing = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, fall)
    expected = [(step + 1) / rise for step in range(rise)]
    for _ in range(fall):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        annealing.step()
    assert shares("cosine", rise + fall) == pytest.approx(expected, abs=1e-9)
    assert cosine(1.0) == 0 and cosine(1.2) == 0


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("batches", [1, 2, 3, 5, 1000])
def test_every_schedule_lets_every_budget_learn(name: str, batches: int) -> None:
    seen = shares(name, batches)
    assert all(0 < share <= 1 for share in seen)
    assert SCHEDULES[name](1.0, 0.0) < 0.002


def test_an_unknown_schedule_is_refused() -> None:
    with pytest.raises(BadInput, match="there is no schedule 'stairs': choose one of one_cycle, steps, cosine"):
        make_schedule("stairs")
    assert steps(0.3) == 0.1


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
    seen: list[float] = []
    while True:
        clock.begin()
        seen.append(clock.share())
        now += step if len(seen) > 1 else first
        clock.tick(8, 8)
        if clock.over():
            break
    assert 100 + seconds - step <= now <= 100 + seconds
    assert seen[0] == pytest.approx(1 / 25) and max(seen) > 0.95 and seen[-1] < 0.02
    left = clock.progress(loss=1.0, rate=0.1).seconds_left
    assert left == pytest.approx(100 + seconds - now)
