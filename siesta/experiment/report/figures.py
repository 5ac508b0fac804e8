"""The figures of a comparison: what each panel draws."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from siesta.experiment.metrics import Spread
from siesta.experiment.report.document import Figure, Panel
from siesta.experiment.report.groups import Group
from siesta.experiment.report.look import LIGHT, PAPER, line_style
from siesta.experiment.report.numbers import span, tick
from siesta.experiment.report.scales import mark_times, scale
from siesta.experiment.results import KS, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["cost_figure", "curves_figure", "sides_figure", "sleep_figure"]

_LARGEST = 420.0  # points squared


def curves_figure(stem: str, order: str, groups: Sequence[Group]) -> Figure:
    """Accuracy after sleep over the classes seen, a panel for each k."""
    panels = [
        Panel(
            _name(stem, order, f"curves-top{k}"),
            f"top-{k}",
            partial(_curves, groups=groups, name="after", k=k, words=f"top-{k} accuracy, %"),
        )
        for k in KS
    ]
    caption = "After sleep, over all classes seen so far. Lines: mean over seeds; bands: ± one standard deviation."
    if any(group.offline for group in groups):
        caption += " Offline learners see everything at once: a level, not a curve."
    return Figure(f"Learning curves, {order}", caption, panels, [group.series for group in groups])


def sleep_figure(stem: str, order: str, groups: Sequence[Group]) -> Figure | None:
    """Before and after each sleep; None where nobody sleeps."""
    groups = [group for group in groups if group.sleeps]
    if not groups:
        return None
    panels = [
        Panel(
            _name(stem, order, f"sleep-top{k}"),
            f"before and after sleep, top-{k}",
            partial(_sleeps, groups=groups, k=k),
        )
        for k in KS
    ]
    caption = "Open and dotted: just before the sleep at the end of a step; filled: after it."
    return Figure(f"What sleep adds, {order}", caption, panels, [group.series for group in groups])


def sides_figure(stem: str, order: str, groups: Sequence[Group]) -> Figure | None:
    """Old and new classes apart; None for an order in which no classes are added."""
    groups = [group for group in groups if len({row["classes"] for row in group.first.rows}) > 1]
    if not groups:
        return None
    panels = [
        Panel(
            _name(stem, order, f"{side}-top1"),
            f"{side} classes",
            partial(_curves, groups=groups, name=side, k=1, words=f"top-1 on {side} classes, %"),
        )
        for side in ("old", "new")
    ]
    caption = "After sleep, on classes first seen in earlier steps, and on those of the step."
    return Figure(f"Old and new classes, {order}", caption, panels, [group.series for group in groups])


@dataclass(frozen=True)
class _Cost:
    name: str
    title: str
    write: Callable[[float], str]
    measure: Callable[[Run], float]


_COSTS = (
    _Cost("updates", "updates U", tick, lambda run: float(run.last["updates"])),
    _Cost("bytes", "memory M", partial(tick, unit="B"), lambda run: float(sum(run.last["bytes"].values()))),
    _Cost("seconds", "time of wake and sleep", span, lambda run: sum(map(run.last["seconds"].get, ("wake", "sleep")))),
)


def cost_figure(stem: str, order: str, groups: Sequence[Group]) -> Figure:
    """Final accuracy against updates, bytes and seconds; circles are as large as networks."""
    panels = [
        Panel(
            _name(stem, order, f"against-{cost.name}"),
            f"against {cost.title}",
            partial(_against, groups=groups, cost=cost),
        )
        for cost in _COSTS
    ]
    caption = (
        "Final top-1 accuracy; up and to the left is better. The area of a circle is the number of parameters P. "
        "Time is what passed on the machine of each run, beside whatever else ran there."
    )
    return Figure(f"Accuracy against cost, {order}", caption, panels, [group.series for group in groups])


def _name(stem: str, order: str, what: str) -> str:
    return "-".join(re.sub(r"[^a-z0-9]+", "_", part.lower()).strip("_") for part in (stem, order)) + f"-{what}"


def _curves(axes: Axes, groups: Sequence[Group], name: str, k: int, words: str) -> None:
    """A field of `Summary` that has a value for each step, as lines with bands."""
    for group in groups:
        style, curve = line_style(group.series), group.curve(lambda run: getattr(run.summaries[k], name))
        if len(curve) == 1 and curve[0] is not None:
            axes.axhline(curve[0].mean, color=style["color"], linestyle=(0, (6, 2)), linewidth=1.3)
            axes.plot([_end(groups)], [curve[0].mean], **{**style, "linestyle": (0, (6, 2))})
            continue
        places = [(x, some) for x, some in zip(_places(group), curve, strict=True) if some is not None]
        axes.plot([x for x, _ in places], [some.mean for _, some in places], **style)
        _band(axes, places, style["color"])
    _finish(axes, groups, words)


def _band(axes: Axes, places: Sequence[tuple[int, Spread]], colour: str) -> None:
    low = [max(some.mean - (some.std or 0.0), 0.0) for _, some in places]
    high = [min(some.mean + (some.std or 0.0), 100.0) for _, some in places]
    if low != high:
        axes.fill_between([x for x, _ in places], low, high, color=colour, alpha=0.16, linewidth=0)


def _sleeps(axes: Axes, groups: Sequence[Group], k: int) -> None:
    for group in groups:
        style, places = line_style(group.series), _places(group)
        after = group.curve(lambda run: run.summaries[k].after)
        before = group.curve(lambda run: run.summaries[k].before)
        pairs = [(x, one, two) for x, one, two in zip(places, before, after, strict=True) if one and two]
        for x, one, two in pairs:
            axes.plot([x, x], [one.mean, two.mean], color=style["color"], linewidth=1.0, alpha=0.6)
        axes.plot(places, [some.mean for some in after if some], **style)
        open_ones = {**style, "linestyle": ":", "label": None, "markerfacecolor": PAPER, "linewidth": 1.2}
        axes.plot([x for x, *_ in pairs], [one.mean for _, one, _ in pairs], **open_ones)
    _finish(axes, groups, f"top-{k} accuracy, %")


def _places(group: Group) -> list[int]:
    """Where steps stand: at the classes seen, or at their number where these do not grow."""
    classes = [int(row["classes"]) for row in group.first.rows]
    return classes if len(set(classes)) == len(classes) else list(range(1, len(classes) + 1))


def _continual(groups: Sequence[Group]) -> Sequence[Group]:
    return [group for group in groups if len(group.first.rows) > 1] or groups


def _end(groups: Sequence[Group]) -> int:
    """Where the last step stands."""
    return max(_places(group)[-1] for group in _continual(groups))


def _finish(axes: Axes, groups: Sequence[Group], words: str) -> None:
    places = sorted({place for group in _continual(groups) for place in _places(group)})
    axes.set_xlabel("step" if places[0] == 1 and places[-1] == len(places) else "classes seen")
    if len(places) <= 12:
        axes.set_xticks(places)
    axes.set_ylabel(words)
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, -1.0), min(high, 101.0))


def _against(axes: Axes, groups: Sequence[Group], cost: _Cost) -> None:
    largest = max(group.first.last["parameters"] for group in groups)
    xs = [spent.mean for group in groups if (spent := group.over_seeds(cost.measure))]
    for group, x in zip(groups, xs, strict=True):
        accuracy = group.over_seeds(lambda run: run.summaries[1].alpha)
        assert accuracy is not None  # every finished run has one
        colour = LIGHT[group.series.place % len(LIGHT)]
        area = _LARGEST * group.first.last["parameters"] / largest
        axes.errorbar(x, accuracy.mean, yerr=accuracy.std, color=colour, linewidth=1.0, capsize=2)
        axes.scatter([x], [accuracy.mean], s=area, color=colour, alpha=0.45, linewidth=0)
        axes.plot([x], [accuracy.mean], **{**line_style(group.series), "linestyle": "none"})
    axes.margins(0.12, 0.18)
    scale(axes, xs)
    if cost.write is span:
        mark_times(axes)
    axes.xaxis.set_major_formatter(lambda value, _: cost.write(value))
    axes.set_xlabel(cost.title + ("" if axes.get_xscale() == "linear" else ", logarithmic"))
    axes.set_ylabel("final top-1 accuracy, %")
