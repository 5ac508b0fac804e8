"""The tables of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from siesta.experiment.flops import achieved_rate
from siesta.experiment.metrics import Spread, spread
from siesta.experiment.report.document import Cell, Table
from siesta.experiment.report.groups import Comparison, Group
from siesta.experiment.report.numbers import MISSING, amount, percent, span, with_deviation
from siesta.experiment.report.paper import Beside, gain_beside, printed_beside
from siesta.experiment.results import KS, Run

__all__ = ["bytes_table", "costs_table", "gains_table", "main_table", "sides_table", "steps_table"]

_PHASES = ("wake", "sleep", "inference")


def main_table(order: str, groups: Sequence[Group]) -> Table:
    """The paper's columns: P, mu, alpha, M, U and the rate; the paper's own values below ours."""
    best = {(name, k): _best(groups, name, k) for name in ("mu", "alpha") for k in KS}
    printed = [printed_beside(group) for group in groups]
    columns = ["method", "P", *(f"{name} top-{k}" for k in KS for name in ("mu", "alpha")), "M", "U", "GFLOPS", "seeds"]
    last = groups[0].first.last
    note = "Best continual learner in bold."
    if any(printed):
        sources = dict.fromkeys(some.source for some in printed if some)
        note += f" Below ours, the paper's: {'; '.join(sources)}."
    if any(some.rate for some in printed if some):
        note += " Of its GFLOPS only ratios can be compared with ours."
    return Table(
        f"{order}: {last['classes']:,} classes, {last['n']:,} test pictures",
        columns,
        [_main_row(group, beside, best) for group, beside in zip(groups, printed, strict=True)],
        note,
    )


def _best(groups: Sequence[Group], name: str, k: int) -> float | None:
    means = [found.mean for group in groups if not group.offline and (found := _accuracy(group, name, k))]
    return max(means) if len(means) > 1 else None


def _accuracy(group: Group, name: str, k: int) -> Spread | None:
    return group.over_seeds(lambda run: getattr(run.summaries[k], name))


def _main_row(group: Group, beside: Beside | None, best: dict[tuple[str, int], float | None]) -> list[Cell]:
    accuracies = []
    for k in KS:
        for name in ("mu", "alpha"):
            found = _accuracy(group, name, k) if not (group.offline and name == "mu") else None
            paper = getattr(beside, name) if beside and beside.k == k else None
            strong = found is not None and not group.offline and found.mean == best[name, k]
            accuracies.append(Cell(percent(found), paper, strong))
    total = group.over_seeds(lambda run: sum(run.last["bytes"].values()))
    return [
        Cell(group.label, "paper" if beside else None),
        Cell(_over(group, lambda run: run.last["parameters"]), beside.parameters if beside else None),
        *accuracies,
        Cell(with_deviation(total, "B"), beside.memory if beside else None),
        Cell(_over(group, lambda run: run.last["updates"]), beside.updates if beside else None),
        Cell(_rate(group), beside.rate if beside else None),
        Cell(str(len(group.runs))),
    ]


def _rate(group: Group) -> str:
    rate = group.over_seeds(lambda run: achieved_rate(run.resources))
    return MISSING if rate is None else f"{rate.mean:.1f}"


def _over(group: Group, measure: Callable[[Run], float | None], unit: str = "") -> str:
    return with_deviation(group.over_seeds(measure), unit)


def steps_table(order: str, groups: Sequence[Group], k: int) -> Table:
    """The learning curves in figures."""
    longest = max(groups, key=lambda group: len(group.first.steps)).first
    grows = len({row["classes"] for row in longest.rows}) > 1
    columns = [f"{row['classes']:,} classes" if grows else f"step {row['step'] + 1}" for row in longest.rows]
    rows = []
    for group in groups:
        curve = [percent(found) for found in group.curve(lambda run: run.summaries[k].after)]
        rows.append([Cell(group.label), *(Cell(text) for text in [MISSING] * (len(columns) - len(curve)) + curve)])
    return Table(f"{order}: top-{k} accuracy after each step, %", ["method", *columns], rows, fold=True)


def gains_table(comparison: Comparison) -> Table | None:
    """What sleeps add; None where nobody sleeps."""
    rows = []
    for group in comparison.groups():
        if group.sleeps:
            cells = [cell for k in KS for cell in _gain_cells(group, k)]
            rows.append([Cell(f"{group.label}, {group.order}"), *cells])
    columns = ["method, order", *(f"{words} top-{k}" for k in KS for words in ("last before", "last after", "gain"))]
    note = "Gain: after - before, mean ± standard deviation over all sleeps of all seeds. Last: around the last sleep."
    return Table("Before and after sleep, %", columns, rows, note) if rows else None


def _gain_cells(group: Group, k: int) -> list[Cell]:
    gains = [
        after - before
        for run in group.runs
        for after, before in zip(run.summaries[k].after, run.summaries[k].before, strict=True)
        if before is not None
    ]
    before = group.over_seeds(lambda run: run.summaries[k].before[-1])
    after = group.over_seeds(lambda run: run.summaries[k].after[-1])
    paper = gain_beside(group) if k == 5 else None
    return [Cell(percent(before)), Cell(percent(after)), Cell(percent(spread(gains), sign=True), paper)]


def sides_table(comparison: Comparison) -> Table | None:
    """Old and new classes at the end, and forgetting; None where no run has a past."""
    rows = []
    for group in comparison.groups():
        if len(group.first.steps) > 1:
            cells = [
                percent(group.over_seeds(measure))
                for k in KS
                for measure in (
                    lambda run, k=k: run.summaries[k].old[-1],
                    lambda run, k=k: run.summaries[k].new[-1],
                    lambda run, k=k: run.summaries[k].forgetting,
                    lambda run, k=k: run.summaries[k].forgetting_of_steps,
                )
            ]
            rows.append([Cell(f"{group.label}, {group.order}"), *map(Cell, cells)])
    names = ("old", "new", "forgetting", "forgetting of steps")
    columns = ["method, order", *(f"{name} top-{k}" for k in KS for name in names)]
    note = (
        "Old, new: accuracy after the last step on classes of earlier steps and of the last. Forgetting: best earlier "
        "accuracy - last, mean over classes, or over classes that came in one step; below zero, they gained."
    )
    return Table("Old and new classes, %", columns, rows, note) if rows else None


def costs_table(comparison: Comparison) -> Table:
    """Seconds and FLOPs by phase."""
    rows = []
    for group in comparison.groups():
        seconds = [_time(group.over_seeds(lambda run, phase=phase: run.last["seconds"][phase])) for phase in _PHASES]  # type: ignore[misc]
        flops = [amount(group.first.last["flops"].get(phase, 0.0)) for phase in _PHASES]
        cells = [*seconds, *flops, _rate(group)]
        rows.append([Cell(f"{group.label}, {group.order}"), *map(Cell, cells)])
    columns = [
        "method, order",
        *(f"{phase}, time" for phase in _PHASES),
        *(f"{phase}, FLOPs" for phase in _PHASES),
        "GFLOPS",
    ]
    note = (
        "Whole run. Time passed on the machine of each run, beside whatever else ran there. GFLOPS: FLOPs of wake and "
        "sleep by their seconds. Inference is all evaluations."
    )
    return Table("Time and FLOPs by phase", columns, rows, note)


def _time(found: Spread | None) -> str:
    if found is None:
        return MISSING
    return span(found.mean) + (f" ± {span(found.std)}" if found.std else "")


def bytes_table(comparison: Comparison) -> Table:
    """M in its parts."""
    names = list(dict.fromkeys(name for group in comparison.groups() for name in group.first.last["bytes"]))
    names = [name for name in names if any(group.first.last["bytes"].get(name) for group in comparison.groups())]
    rows = []
    for group in comparison.groups():
        parts = [_over(group, lambda run, name=name: run.last["bytes"].get(name, 0), "B") for name in names]  # type: ignore[misc]
        total = _over(group, lambda run: sum(run.last["bytes"].values()), "B")
        rows.append([Cell(f"{group.label}, {group.order}"), Cell(total), *map(Cell, parts)])
    return Table("Memory M at the end, in parts", ["method, order", "M", *names], rows)
