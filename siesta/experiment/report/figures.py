"""The figures of a comparison, and what each of their panels draws."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from siesta.experiment.metrics import MeanStd
from siesta.experiment.report.document import Panel, ReportFigure
from siesta.experiment.report.formatting import format_duration, format_tick
from siesta.experiment.report.groups import SeedGroup
from siesta.experiment.report.scales import set_cost_scale, set_time_ticks
from siesta.experiment.report.style import BACKGROUND_COLOUR, LIGHT_COLOURS, line_style
from siesta.experiment.results import KS, FinishedRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["cost_figure", "curves_figure", "old_new_figure", "sleep_figure"]

_LARGEST_CIRCLE = 420.0  # points squared
_MAX_TICKS = 12


def curves_figure(stem: str, order: str, groups: Sequence[SeedGroup]) -> ReportFigure:
    """Return learning curves: accuracy after sleep over the classes seen, a panel for each k."""
    panels = [
        Panel(
            _file_name(stem, order, f"curves-top{k}"),
            f"top-{k}",
            partial(_draw_curves, groups=groups, metric="after", k=k, label=f"top-{k} accuracy, %"),
        )
        for k in KS
    ]
    caption = "After sleep, over all classes seen so far. Lines: mean over seeds; bands: ± one standard deviation."
    if any(group.offline for group in groups):
        caption += " Offline learners learn everything in one step and are drawn as horizontal lines."
    return ReportFigure(f"Learning curves, {order}", caption, panels, [group.series for group in groups])


def sleep_figure(stem: str, order: str, groups: Sequence[SeedGroup]) -> ReportFigure | None:
    """Return accuracy before and after each sleep; None if no method sleeps."""
    groups = [group for group in groups if group.sleeps]
    if not groups:
        return None
    panels = [
        Panel(
            _file_name(stem, order, f"sleep-top{k}"),
            f"before and after sleep, top-{k}",
            partial(_draw_sleeps, groups=groups, k=k),
        )
        for k in KS
    ]
    caption = "Open markers and dotted lines: before the sleep at the end of a step; filled markers: after it."
    return ReportFigure(f"What sleep adds, {order}", caption, panels, [group.series for group in groups])


def old_new_figure(stem: str, order: str, groups: Sequence[SeedGroup]) -> ReportFigure | None:
    """Return accuracy on old and on new classes; None for an order in which no classes are added."""
    groups = [group for group in groups if len({row["classes"] for row in group.first.rows}) > 1]
    if not groups:
        return None
    panels = [
        Panel(
            _file_name(stem, order, f"{side}-top1"),
            f"{side} classes",
            partial(_draw_curves, groups=groups, metric=side, k=1, label=f"top-1 on {side} classes, %"),
        )
        for side in ("old", "new")
    ]
    caption = "After sleep, on classes first seen in earlier steps, and on those of the step."
    return ReportFigure(f"Old and new classes, {order}", caption, panels, [group.series for group in groups])


@dataclass(frozen=True)
class _Cost:
    """A cost to draw accuracy against: how to measure it, and how to format it on the axis."""

    name: str
    title: str
    formatted: Callable[[float], str]
    measure: Callable[[FinishedRun], float]


_COSTS = (
    _Cost("updates", "updates U", format_tick, lambda run: float(run.last["updates"])),
    _Cost("bytes", "memory M", partial(format_tick, unit="B"), lambda run: float(sum(run.last["bytes"].values()))),
    _Cost(
        "seconds",
        "time of wake and sleep",
        format_duration,
        lambda run: sum(map(run.last["seconds"].get, ("wake", "sleep"))),
    ),
)


def cost_figure(stem: str, order: str, groups: Sequence[SeedGroup]) -> ReportFigure:
    """Return final accuracy against updates, bytes and seconds, with circles as large as networks."""
    panels = [
        Panel(
            _file_name(stem, order, f"against-{cost.name}"),
            f"against {cost.title}",
            partial(_draw_against, groups=groups, cost=cost),
        )
        for cost in _COSTS
    ]
    caption = (
        "Final top-1 accuracy; up and to the left is better. The area of a circle is the number of parameters P. "
        "Time is wall time on the machine of each run, which other processes may have slowed down."
    )
    return ReportFigure(f"Accuracy against cost, {order}", caption, panels, [group.series for group in groups])


def _file_name(stem: str, order: str, suffix: str) -> str:
    return "-".join(re.sub(r"[^a-z0-9]+", "_", part.lower()).strip("_") for part in (stem, order)) + f"-{suffix}"


def _draw_curves(axes: Axes, groups: Sequence[SeedGroup], metric: str, k: int, label: str) -> None:
    """Draw a field of `RunMetrics` that has a value for each step, as lines with bands."""
    for group in groups:
        style = line_style(group.series)
        curve = group.curve(lambda run: getattr(run.metrics[k], metric))
        if len(curve) == 1 and curve[0] is not None:
            dashed = (0, (6, 2))
            axes.axhline(curve[0].mean, color=style["color"], linestyle=dashed, linewidth=1.3)
            axes.plot([_last_position(groups)], [curve[0].mean], **{**style, "linestyle": dashed})
            continue
        points = [(x, found) for x, found in zip(_positions(group), curve, strict=True) if found is not None]
        axes.plot([x for x, _ in points], [found.mean for _, found in points], **style)
        _draw_band(axes, points, style["color"])
    _finish(axes, groups, label)


def _draw_band(axes: Axes, points: Sequence[tuple[int, MeanStd]], colour: str) -> None:
    low = [max(found.mean - (found.std or 0.0), 0.0) for _, found in points]
    high = [min(found.mean + (found.std or 0.0), 100.0) for _, found in points]
    if low != high:
        axes.fill_between([x for x, _ in points], low, high, color=colour, alpha=0.16, linewidth=0)


def _draw_sleeps(axes: Axes, groups: Sequence[SeedGroup], k: int) -> None:
    """Draw accuracy before and after each sleep, joined by vertical lines."""
    for group in groups:
        style = line_style(group.series)
        positions = _positions(group)
        after = group.curve(lambda run: run.metrics[k].after)
        before = group.curve(lambda run: run.metrics[k].before)
        pairs = [(x, low, high) for x, low, high in zip(positions, before, after, strict=True) if low and high]
        for x, low, high in pairs:
            axes.plot([x, x], [low.mean, high.mean], color=style["color"], linewidth=1.0, alpha=0.6)
        axes.plot(positions, [found.mean for found in after if found], **style)
        open_style = {
            **style,
            "linestyle": ":",
            "label": None,
            "markerfacecolor": BACKGROUND_COLOUR,
            "linewidth": 1.2,
        }
        axes.plot([x for x, *_ in pairs], [low.mean for _, low, _ in pairs], **open_style)
    _finish(axes, groups, f"top-{k} accuracy, %")


def _positions(group: SeedGroup) -> list[int]:
    """Return the x of each step: the classes seen, or the step's number if the classes do not grow."""
    classes = [int(row["classes"]) for row in group.first.rows]
    return classes if len(set(classes)) == len(classes) else list(range(1, len(classes) + 1))


def _continual(groups: Sequence[SeedGroup]) -> Sequence[SeedGroup]:
    """Return the groups with several steps, or all if there are none."""
    return [group for group in groups if len(group.first.rows) > 1] or groups


def _last_position(groups: Sequence[SeedGroup]) -> int:
    return max(_positions(group)[-1] for group in _continual(groups))


def _finish(axes: Axes, groups: Sequence[SeedGroup], label: str) -> None:
    """Set labels, ticks and limits of axes with steps on x and percent on y."""
    positions = sorted({position for group in _continual(groups) for position in _positions(group)})
    axes.set_xlabel("step" if positions[0] == 1 and positions[-1] == len(positions) else "classes seen")
    if len(positions) <= _MAX_TICKS:
        axes.set_xticks(positions)
    axes.set_ylabel(label)
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, -1.0), min(high, 101.0))


def _draw_against(axes: Axes, groups: Sequence[SeedGroup], cost: _Cost) -> None:
    """Draw final accuracy against a cost."""
    most_parameters = max(group.first.last["parameters"] for group in groups)
    xs = [spent.mean for group in groups if (spent := group.over_seeds(cost.measure))]
    for group, x in zip(groups, xs, strict=True):
        accuracy = group.over_seeds(lambda run: run.metrics[1].alpha)
        assert accuracy is not None  # every finished run has one
        colour = LIGHT_COLOURS[group.series.index % len(LIGHT_COLOURS)]
        area = _LARGEST_CIRCLE * group.first.last["parameters"] / most_parameters
        axes.errorbar(x, accuracy.mean, yerr=accuracy.std, color=colour, linewidth=1.0, capsize=2)
        axes.scatter([x], [accuracy.mean], s=area, color=colour, alpha=0.45, linewidth=0)
        axes.plot([x], [accuracy.mean], **{**line_style(group.series), "linestyle": "none"})
    axes.margins(0.12, 0.18)
    set_cost_scale(axes, xs)
    if cost.formatted is format_duration:
        set_time_ticks(axes)
    axes.xaxis.set_major_formatter(lambda value, _: cost.formatted(value))
    axes.set_xlabel(cost.title + ("" if axes.get_xscale() == "linear" else ", logarithmic"))
    axes.set_ylabel("final top-1 accuracy, %")
    axes.set_ylim(bottom=max(axes.get_ylim()[0], -9.0))  # circles at zero are whole, and no tick is at -10 %
