"""Figures draw the means, bands and costs of their groups."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure as Drawing

from siesta.experiment.report.document import ReportFigure
from siesta.experiment.report.figures import cost_figure, curves_figure, old_new_figure, sleep_figure
from siesta.experiment.report.groups import DatasetComparison, group_by_dataset
from siesta.experiment.results import read_results
from tests.experiment.written_runs import write_run


@pytest.fixture
def comparison(out: Path) -> DatasetComparison:
    (comparison,) = group_by_dataset(read_results([out]).runs)
    return comparison


def axes_of(figure: ReportFigure, panel: int) -> Any:
    axes = Drawing().add_subplot()
    figure.panels[panel].draw(axes)
    return axes


def lines(axes: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_curves_are_means_over_seeds(comparison: DatasetComparison) -> None:
    groups = comparison.orders["class_incremental"]
    figure = curves_figure("toy data", "class_incremental", groups)
    assert [panel.name for panel in figure.panels] == [
        "toy_data-class_incremental-curves-top1",
        "toy_data-class_incremental-curves-top5",
    ]
    axes = axes_of(figure, 0)
    render_panel = lines(axes)
    assert list(render_panel) == [group.label for group in groups]
    assert list(render_panel["siesta"].get_xdata()) == [2, 4, 6]
    expected = [mean(pair) for pair in zip(*(run.metrics[1].after for run in groups[0].runs), strict=True)]
    np.testing.assert_allclose(render_panel["siesta"].get_ydata(), expected)
    assert list(render_panel["offline"].get_xdata()) == [6]
    assert len(axes.collections) == 4  # a band for all with two seeds
    assert axes.get_xlabel() == "classes seen"
    assert axes_of(curves_figure("toy", "iid", comparison.orders["iid"]), 0).get_xlabel() == "step"


def test_before_and_after(comparison: DatasetComparison) -> None:
    groups = comparison.orders["iid"]
    figure = sleep_figure("toy", "iid", groups)
    assert figure is not None
    assert [series.label for series in figure.series] == ["siesta"]
    axes = axes_of(figure, 0)
    before = [line for line in axes.get_lines() if line.get_linestyle() == ":"]
    expected = [mean(pair) for pair in zip(*(run.metrics[1].before for run in groups[0].runs), strict=True)]
    np.testing.assert_allclose(before[0].get_ydata(), expected)
    assert sleep_figure("toy", "iid", groups[1:]) is None


def test_old_and_new(comparison: DatasetComparison) -> None:
    figure = old_new_figure("toy", "class_incremental", comparison.orders["class_incremental"])
    assert figure is not None
    old, new = (lines(axes_of(figure, panel)) for panel in (0, 1))
    assert "offline" not in old
    assert list(old["slda"].get_xdata()) == [4, 6]  # nothing is old at first
    assert list(new["slda"].get_xdata()) == [2, 4, 6]
    assert old_new_figure("toy", "iid", comparison.orders["iid"]) is None


def test_circles_are_as_large_as_networks(comparison: DatasetComparison) -> None:
    groups = comparison.orders["iid"]
    figure = cost_figure("toy", "iid", groups)
    assert [re.sub(".*-", "", panel.name) for panel in figure.panels] == ["updates", "bytes", "seconds"]
    circles = [some for some in axes_of(figure, 2).collections if isinstance(some, PathCollection)]
    sizes = [some.get_sizes()[0] for some in circles]
    parameters = [group.first.last["parameters"] for group in groups]
    np.testing.assert_allclose(np.divide(sizes, sizes[0]), np.divide(parameters, parameters[0]))
    for group, circle in zip(groups, circles, strict=True):
        spent = mean(run.last["seconds"]["wake"] + run.last["seconds"]["sleep"] for run in group.runs)
        final = mean(run.metrics[1].alpha for run in group.runs)
        np.testing.assert_allclose(np.asarray(circle.get_offsets())[0], np.array([spent, final]))


@pytest.mark.parametrize(("updates", "scale"), [((5, 9), "linear"), ((5, 900), "log"), ((0, 5, 900), "symlog")])
def test_costs_that_differ_much_are_drawn_logarithmically(tmp_path: Path, updates: tuple[int, ...], scale: str) -> None:
    for method, spent in zip(("siesta", "remind", "ncm"), updates, strict=False):
        write_run(tmp_path / "toy", method, updates=spent)
    (comparison,) = group_by_dataset(read_results([tmp_path]).runs)
    axes = axes_of(cost_figure("toy", "class_incremental", comparison.groups()), 0)
    assert axes.get_xscale() == scale


def test_times_are_formatted_as_durations(tmp_path: Path) -> None:
    for method, spent in (("siesta", 30.0), ("remind", 4000.0)):
        write_run(tmp_path / "toy", method, seconds={"wake": spent, "sleep": 0.0, "inference": 1.0})
    (comparison,) = group_by_dataset(read_results([tmp_path]).runs)
    axes = axes_of(cost_figure("toy", "class_incremental", comparison.groups()), 2)
    low, high = axes.get_xlim()
    shown = [axes.xaxis.get_major_formatter()(place, 0) for place in axes.get_xticks() if low <= place <= high]
    assert {"1 min", "10 min", "1 h"} <= set(shown)
