"""Axes of costs are logarithmic where values differ much, and times are marked in customary units."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure

from siesta.experiment.report.formatting import format_duration
from siesta.experiment.report.scales import set_cost_scale, set_time_ticks


def axes_with(xs: list[float]) -> Any:
    axes = Figure().add_subplot()
    axes.plot(xs, [1.0] * len(xs), "o")
    axes.margins(0.12, 0.18)
    set_cost_scale(axes, xs)
    return axes


@pytest.mark.parametrize(
    ("xs", "scale"),
    [
        ([5.0, 9.0], "linear"),
        ([5.0, 50.0], "linear"),
        ([5.0, 51.0], "log"),
        ([5.0, 900.0], "log"),
        ([0.0, 5.0, 900.0], "symlog"),
        ([0.0, 0.0], "linear"),
    ],
)
def test_values_far_apart_are_shown_in_decades(xs: list[float], scale: str) -> None:
    assert axes_with(xs).get_xscale() == scale


def test_nearly_equal_values_are_not_spread_over_the_axis() -> None:
    low, high = axes_with([1000.0, 1000.1]).get_xlim()
    assert (low, high) == pytest.approx((800.0, 1200.0), rel=1e-3)


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        ([30.0, 4000.0], ["1 min", "10 min", "1 h"]),
        ([100.0, 150.0, 400.0], ["2 min", "4 min", "6 min"]),
        ([0.2, 0.3], ["0.3 s"]),
    ],
)
def test_times_have_customary_ticks(seconds: list[float], labels: list[str]) -> None:
    axes = axes_with(seconds)
    set_time_ticks(axes)
    low, high = axes.get_xlim()
    shown = [format_duration(place) for place in axes.get_xticks() if low <= place <= high]
    assert set(labels) <= set(shown)
    assert len(shown) <= 5
