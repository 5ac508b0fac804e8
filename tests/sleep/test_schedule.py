"""Schedules against torch's own."""

from __future__ import annotations

import pytest
import torch

from siesta.errors import BadInput
from siesta.sleep.schedule import SCHEDULES, cosine, make_schedule, one_cycle, steps


def shares(name: str, batches: int) -> list[float]:
    schedule = make_schedule(name)
    return [schedule(step / batches, 1 / batches) for step in range(batches)]


@pytest.mark.parametrize("batches", [4, 10, 47])
def test_one_cycle_is_torchs(batches: int) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=batches, cycle_momentum=False)
    expected = []
    for step in range(batches):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if step + 1 < batches:
            schedule.step()
    assert shares("one_cycle", batches) == pytest.approx(expected, rel=1e-9)


def test_one_cycle_stays_at_its_end() -> None:
    assert one_cycle(0.0) == pytest.approx(1 / 25) and one_cycle(0.3) == 1.0
    assert one_cycle(1.0) == one_cycle(1.7) == pytest.approx(1 / 25e4)


@pytest.mark.parametrize("batches_an_epoch", [1, 3, 7, 100, 641])
def test_steps_drop_at_epochs_15_30_and_45_of_50_exactly(batches_an_epoch: int) -> None:
    seen = shares("steps", 50 * batches_an_epoch)
    expected = [0.1 ** (epoch // 15) for epoch in range(50) for _ in range(batches_an_epoch)]
    assert seen == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("batches_an_epoch", [1, 4])
def test_cosine_is_torchs_after_a_linear_warm_up(batches_an_epoch: int) -> None:
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
def test_no_batch_of_any_schedule_has_a_learning_rate_of_zero(name: str, batches: int) -> None:
    seen = shares(name, batches)
    assert all(0 < share <= 1 for share in seen)
    assert SCHEDULES[name](1.0, 0.0) < 0.002


def test_an_unknown_schedule_is_refused() -> None:
    with pytest.raises(BadInput, match="there is no schedule 'stairs': choose one of one_cycle, steps, cosine"):
        make_schedule("stairs")
    assert steps(0.3) == 0.1
