"""Axes of costs: linear or in decades, with ticks where people look for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["mark_times", "scale"]

_DECADES = (0.1, 1, 10, 60, 600, *(3600 * 10**power for power in range(6)))


def mark_times(axes: Axes) -> None:
    """Ticks at times that people use."""
    from matplotlib.ticker import FixedLocator, MultipleLocator, NullLocator

    low, high = axes.get_xlim()
    if axes.get_xscale() == "linear":
        axes.xaxis.set_major_locator(MultipleLocator(next(step for step in _times() if high - low <= 4 * step)))
        return
    axes.xaxis.set_major_locator(FixedLocator([time for time in _DECADES if low <= time <= high]))
    axes.xaxis.set_minor_locator(NullLocator())


def _times() -> Iterator[float]:
    """Parts of a second, seconds, minutes and hours, in seconds."""
    yield from (0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800)
    for power in range(6):
        yield from (3600 * 10**power * times for times in (1, 2, 5))


def scale(axes: Axes, xs: Sequence[float]) -> None:
    """Decades, where values are far apart; zero has its place on the left."""
    from matplotlib.ticker import LogLocator

    above = [x for x in xs if x > 0]
    if not above or max(above) <= 10 * min(above):
        axes.locator_params(axis="x", nbins=4)
        if max(xs) - min(xs) < 0.02 * max(xs):  # all the same: no digits that say nothing
            axes.set_xlim(0.8 * min(xs), 1.2 * max(xs))
        return
    if min(xs) > 0:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(xs) < 50 * min(xs) else (1,)))
        axes.xaxis.set_minor_formatter(lambda *_: "")
    else:
        axes.set_xscale("symlog", linthresh=min(above))
