"""Scales of cost axes: linear or logarithmic, with ticks at customary values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["set_cost_scale", "set_time_ticks"]

_LOG_TICKS = (0.1, 1, 10, 60, 600, *(3600 * 10**power for power in range(6)))
"""Ticks of a logarithmic time axis, in seconds."""


def set_time_ticks(axes: Axes) -> None:
    """Set ticks of an x axis in seconds at customary durations, such as 10 min."""
    from matplotlib.ticker import FixedLocator, MultipleLocator, NullLocator

    low, high = axes.get_xlim()
    if axes.get_xscale() == "linear":
        step = next(step for step in _tick_steps() if high - low <= 4 * step)
        axes.xaxis.set_major_locator(MultipleLocator(step))
        return
    axes.xaxis.set_major_locator(FixedLocator([time for time in _LOG_TICKS if low <= time <= high]))
    axes.xaxis.set_minor_locator(NullLocator())


def _tick_steps() -> Iterator[float]:
    """Yield customary distances of ticks from fractions of a second to hours, in seconds."""
    yield from (0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800)
    for power in range(6):
        yield from (3600 * 10**power * times for times in (1, 2, 5))


def set_cost_scale(axes: Axes, xs: Sequence[float]) -> None:
    """Set a logarithmic x axis if the values differ by more than a factor of ten; zero is placed on its left."""
    from matplotlib.ticker import LogLocator

    positive = [x for x in xs if x > 0]
    if not positive or max(positive) <= 10 * min(positive):
        axes.locator_params(axis="x", nbins=4)
        if max(xs) - min(xs) < 0.02 * max(xs):  # nearly equal values would get ticks with meaningless digits
            axes.set_xlim(0.8 * min(xs), 1.2 * max(xs))
        return
    if min(xs) > 0:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(xs) < 50 * min(xs) else (1,)))
        axes.xaxis.set_minor_formatter(lambda *_: "")
    else:
        axes.set_xscale("symlog", linthresh=min(positive))
