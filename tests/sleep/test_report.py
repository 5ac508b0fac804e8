"""The report of a sleep, for people and as JSON."""

from __future__ import annotations

from dataclasses import replace

import pytest

from siesta import SleepReport

REPORT = SleepReport(
    generation=3,
    updates=1234,
    seconds=5.25,
    samples=100,
    embedded=0,
    classes=7,
    new_classes=2,
    loss_before=1.5,
    loss_after=0.25,
    top_change=0.015,
    interrupted=False,
    held_out=40,
    accuracy_before=0.5,
    accuracy_after=0.75,
    confidence={},
    used=True,
    settings={"policy": "uniform", "lr": 0.1},
)


def test_the_summary_says_what_happened() -> None:
    assert REPORT.summary() == (
        "Slept: 1,234 updates in 5.2 s over 100 samples of 7 classes (2 new). Loss 1.500 -> 0.250, top changed by "
        "1.50 %; on 40 samples it never rehearses 50.0 % -> 75.0 % (95 % interval 59 to 87 %). Generation 3 is in use."
    )
    assert replace(REPORT, interrupted=True).summary().startswith("Woke up early: ")
    assert replace(REPORT, used=False).summary().endswith("generation 3 is kept but not used.")


def test_a_sleep_without_a_budget_says_why_it_ended() -> None:
    texts = {
        "no_gain": "It ended after 3 rounds, when held-out samples stopped gaining. Generation 3",
        "ceiling": "It ended after 3 rounds, at its ceiling, while held-out samples still gained. Generation 3",
        "passes": "It made a fixed number of passes: fewer than 20 samples are held out. Generation 3",
    }
    for ended, text in texts.items():
        assert text in replace(REPORT, rounds=3, ended=ended).summary()  # type: ignore[arg-type]
    assert "87 %), optimistic because they also decided about" in replace(REPORT, optimistic=True).summary()


def test_without_held_out_samples_the_summary_has_no_accuracy() -> None:
    report = replace(REPORT, held_out=0, accuracy_before=None, accuracy_after=None)
    assert report.held_out_summary() == ""
    assert "never rehearses" not in report.summary()


def test_stored_reports_call_the_learning_rate_rate() -> None:
    values = REPORT.as_dict()
    assert values["settings"] == {"policy": "uniform", "rate": 0.1}
    assert values.pop("interval_after") == pytest.approx((0.588, 0.873), abs=1e-3)
    assert {**values, "settings": REPORT.settings} == vars(REPORT)
