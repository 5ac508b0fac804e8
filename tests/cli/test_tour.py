"""The tour: a short one always; all of it, on three seeds, in the slow tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from siesta.cli.tour import TourStep, save_learning_curve, tour


def test_a_short_tour_reports_what_happened(tmp_path: Path) -> None:
    activities: list[str] = []
    steps = []
    for step in tour(seed=0, updates=64, notify=lambda text, _share: activities.append(text)):
        steps.append(step)
        if len(steps) == 2:
            break
    assert [len(step.classes) for step in steps] == [2, 4]
    assert steps[1].taught > steps[0].taught and steps[1].stored_bytes > steps[0].stored_bytes
    assert steps[0].before_sleep == steps[0].awake_only, "both learners are the same until the first sleep"
    assert all(50 < step.after_sleep <= 100 for step in steps[:1])
    assert any(text.startswith("asleep") for text in activities)
    save_learning_curve(steps, tmp_path / "curve.png")
    with Image.open(tmp_path / "curve.png") as curve:
        assert curve.size == (1050, 600)


def test_ctrl_c_in_a_sleep_ends_the_tour() -> None:
    def press(text: str, _share: float) -> None:
        if text.startswith("asleep"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(tour(updates=64, notify=press))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sleep_gains_three_points_and_more_over_staying_awake(seed: int) -> None:
    steps: list[TourStep] = list(tour(seed))
    gains = [step.after_sleep - step.before_sleep for step in steps]
    assert len(steps) == 5 and min(gains) > 0 and sum(gains) / len(gains) >= 3, gains
    assert steps[-1].after_sleep - steps[-1].awake_only >= 3
