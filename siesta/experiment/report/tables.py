"""The tables of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from siesta.experiment.flops import achieved_gflops
from siesta.experiment.metrics import MeanStd, mean_and_std
from siesta.experiment.report.document import Cell, ReportTable
from siesta.experiment.report.formatting import (
    MISSING,
    format_amount,
    format_duration,
    format_mean_std,
    format_percent,
)
from siesta.experiment.report.groups import DatasetComparison, SeedGroup
from siesta.experiment.report.published import PublishedCells, published_cells, published_gain
from siesta.experiment.results import KS, FinishedRun

__all__ = ["bytes_table", "costs_table", "gains_table", "main_table", "old_new_table", "steps_table"]

_PHASES = ("wake", "sleep", "inference")


def main_table(order: str, groups: Sequence[SeedGroup]) -> ReportTable:
    """Return the paper's columns P, mu, alpha, M, U and GFLOPS, with the published values below ours."""
    best = {(name, k): _best(groups, name, k) for name in ("mu", "alpha") for k in KS}
    published = [published_cells(group) for group in groups]
    columns = ["method", "P", *(f"{name} top-{k}" for k in KS for name in ("mu", "alpha")), "M", "U", "GFLOPS", "seeds"]
    last = groups[0].first.last
    return ReportTable(
        f"{order}: {last['classes']:,} classes, {last['n']:,} test images",
        columns,
        [_main_row(group, cells, best) for group, cells in zip(groups, published, strict=True)],
        _main_note([cells for cells in published if cells]),
    )


def _main_note(published: Sequence[PublishedCells]) -> str:
    note = "The best continual learner is in bold."
    if published:
        sources = dict.fromkeys(cells.source for cells in published)
        note += f" Below ours, the paper's: {'; '.join(sources)}."
    if any(cells.gflops for cells in published):
        note += " Only ratios of its GFLOPS can be compared with ours."
    return note


def _best(groups: Sequence[SeedGroup], name: str, k: int) -> float | None:
    """Return the highest mean of continual learners; None if there is only one."""
    means = [found.mean for group in groups if not group.offline and (found := _accuracy(group, name, k))]
    return max(means) if len(means) > 1 else None


def _accuracy(group: SeedGroup, name: str, k: int) -> MeanStd | None:
    return group.over_seeds(lambda run: getattr(run.metrics[k], name))


def _main_row(
    group: SeedGroup, published: PublishedCells | None, best: dict[tuple[str, int], float | None]
) -> list[Cell]:
    accuracies = []
    for k in KS:
        for name in ("mu", "alpha"):
            found = _accuracy(group, name, k) if not (group.offline and name == "mu") else None
            paper = getattr(published, name) if published and published.k == k else None
            is_best = found is not None and not group.offline and found.mean == best[name, k]
            accuracies.append(Cell(format_percent(found), paper, is_best))
    return [
        Cell(group.label, "paper" if published else None),
        Cell(_mean_std(group, lambda run: run.last["parameters"]), published.parameters if published else None),
        *accuracies,
        Cell(_mean_std(group, _total_bytes, "B"), published.memory if published else None),
        Cell(_mean_std(group, lambda run: run.last["updates"]), published.updates if published else None),
        Cell(_gflops(group), published.gflops if published else None),
        Cell(str(len(group.runs))),
    ]


def _total_bytes(run: FinishedRun) -> float:
    return float(sum(run.last["bytes"].values()))


def _gflops(group: SeedGroup) -> str:
    gflops = group.over_seeds(lambda run: achieved_gflops(run.resources))
    return MISSING if gflops is None else f"{gflops.mean:.1f}"


def _mean_std(group: SeedGroup, measure: Callable[[FinishedRun], float | None], unit: str = "") -> str:
    return format_mean_std(group.over_seeds(measure), unit)


def steps_table(order: str, groups: Sequence[SeedGroup], k: int) -> ReportTable:
    """Return the learning curves as numbers."""
    longest = max(groups, key=lambda group: len(group.first.steps)).first
    grows = len({row["classes"] for row in longest.rows}) > 1
    columns = [f"{row['classes']:,} classes" if grows else f"step {row['step'] + 1}" for row in longest.rows]
    rows = []
    for group in groups:
        curve = [format_percent(found) for found in group.curve(lambda run: run.metrics[k].after)]
        padding = [MISSING] * (len(columns) - len(curve))
        rows.append([Cell(group.label), *map(Cell, padding + curve)])
    title = f"{order}: top-{k} accuracy after each step, %"
    return ReportTable(title, ["method", *columns], rows, collapsible=True)


def gains_table(comparison: DatasetComparison) -> ReportTable | None:
    """Return the gains of sleeps; None if no method sleeps."""
    rows = []
    for group in comparison.groups():
        if group.sleeps:
            cells = [cell for k in KS for cell in _gain_cells(group, k)]
            rows.append([_row_name(group), *cells])
    columns = ["method, order", *(f"{name} top-{k}" for k in KS for name in ("last before", "last after", "gain"))]
    note = "Gain: after - before, mean ± standard deviation over all sleeps of all seeds. Last: around the last sleep."
    return ReportTable("Before and after sleep, %", columns, rows, note) if rows else None


def _row_name(group: SeedGroup) -> Cell:
    return Cell(f"{group.label}, {group.order}")


def _gain_cells(group: SeedGroup, k: int) -> list[Cell]:
    gains = [
        after - before
        for run in group.runs
        for after, before in zip(run.metrics[k].after, run.metrics[k].before, strict=True)
        if before is not None
    ]
    before = group.over_seeds(lambda run: run.metrics[k].before[-1])
    after = group.over_seeds(lambda run: run.metrics[k].after[-1])
    paper = published_gain(group) if k == 5 else None
    gain = Cell(format_percent(mean_and_std(gains), sign=True), paper)
    return [Cell(format_percent(before)), Cell(format_percent(after)), gain]


def old_new_table(comparison: DatasetComparison) -> ReportTable | None:
    """Return final accuracy on old and new classes, and forgetting; None if every run has a single step."""
    rows = [
        [_row_name(group), *(cell for k in KS for cell in _old_new_cells(group, k))]
        for group in comparison.groups()
        if len(group.first.steps) > 1
    ]
    names = ("old", "new", "forgetting", "forgetting of steps")
    columns = ["method, order", *(f"{name} top-{k}" for k in KS for name in names)]
    note = (
        "Old, new: accuracy after the last step on classes of earlier steps and of the last. Forgetting: best earlier "
        "accuracy - last, mean over classes, or over classes first seen in the same step; negative if they gained."
    )
    return ReportTable("Old and new classes, %", columns, rows, note) if rows else None


def _old_new_cells(group: SeedGroup, k: int) -> list[Cell]:
    found = [
        group.over_seeds(lambda run: run.metrics[k].old[-1]),
        group.over_seeds(lambda run: run.metrics[k].new[-1]),
        group.over_seeds(lambda run: run.metrics[k].forgetting),
        group.over_seeds(lambda run: run.metrics[k].forgetting_of_steps),
    ]
    return [Cell(format_percent(value)) for value in found]


def costs_table(comparison: DatasetComparison) -> ReportTable:
    """Return seconds and FLOPs by phase."""
    rows = []
    for group in comparison.groups():
        seconds = [_duration(group, phase) for phase in _PHASES]
        flops = [format_amount(group.first.last["flops"].get(phase, 0.0)) for phase in _PHASES]
        rows.append([_row_name(group), *map(Cell, [*seconds, *flops, _gflops(group)])])
    columns = [
        "method, order",
        *(f"{phase}, time" for phase in _PHASES),
        *(f"{phase}, FLOPs" for phase in _PHASES),
        "GFLOPS",
    ]
    note = (
        "Of the whole run. Time is wall time on the machine of each run, which other processes may have slowed down. "
        "GFLOPS: FLOPs of wake and sleep by their seconds. Inference: all evaluations."
    )
    return ReportTable("Time and FLOPs by phase", columns, rows, note)


def _duration(group: SeedGroup, phase: str) -> str:
    found = group.over_seeds(lambda run: run.last["seconds"][phase])
    if found is None:
        return MISSING
    return format_duration(found.mean) + (f" ± {format_duration(found.std)}" if found.std else "")


def bytes_table(comparison: DatasetComparison) -> ReportTable:
    """Return M at the end and its parts; parts that are zero everywhere are left out."""
    groups = comparison.groups()
    names = dict.fromkeys(name for group in groups for name in group.first.last["bytes"])
    used = [name for name in names if any(group.first.last["bytes"].get(name) for group in groups)]
    rows = []
    for group in groups:
        parts = [_part_bytes(group, name) for name in used]
        rows.append([_row_name(group), *map(Cell, [_mean_std(group, _total_bytes, "B"), *parts])])
    return ReportTable("Memory M at the end, in parts", ["method, order", "M", *used], rows)


def _part_bytes(group: SeedGroup, name: str) -> str:
    return _mean_std(group, lambda run: run.last["bytes"].get(name, 0), "B")
