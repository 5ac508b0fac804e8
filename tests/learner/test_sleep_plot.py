"""The figure of sleeps."""

from __future__ import annotations

from siesta.learner.sleep_plot import sleep_plot


def test_nothing_was_measured() -> None:
    assert sleep_plot([]) == sleep_plot([{"accuracy_before": None, "accuracy_after": None}]) == ""


def test_each_measured_sleep_has_two_marks_and_many_share_the_numbers() -> None:
    figure = sleep_plot([{"accuracy_before": 0.5, "accuracy_after": 0.6}] * 45)
    assert figure.count("<circle") == 90
    assert figure.count('text-anchor="middle"') == 15
