"""From results to a report: which tables and figures there are, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from siesta.experiment.report.differences import between_methods, between_orders
from siesta.experiment.report.document import Cell, Listing, Part, Report, Section, Table
from siesta.experiment.report.figures import cost_figure, curves_figure, sides_figure, sleep_figure
from siesta.experiment.report.groups import Comparison, compared
from siesta.experiment.report.numbers import MISSING
from siesta.experiment.report.tables import (
    bytes_table,
    costs_table,
    gains_table,
    main_table,
    sides_table,
    steps_table,
)
from siesta.experiment.results import KS, Results, Run

__all__ = ["make_report"]


def make_report(results: Results) -> Report:
    """Everything that can be said about some results."""
    comparisons = compared(results.runs)
    sections = [section for comparison in comparisons for section in _sections(comparison)]
    names = sorted({str(run.last["experiment"]) for run in results.runs} or {run.source for run in results.unfinished})
    lead = "No run is finished yet."
    if results.runs:
        runs = f"{len(results.runs)} finished run{'s' if len(results.runs) > 1 else ''}"
        lead = f"{runs}. Every accuracy is computed from the stored answers to all test pictures."
    if results.unfinished:
        lead += f" {len(results.unfinished)} not finished: listed under Runs, and in no table or figure above it."
    return Report(f"siesta: {', '.join(names)}", lead, [*sections, Section("Runs", 2, list(_runs(results)))])


def _sections(comparison: Comparison) -> Iterator[Section]:
    orders, stem = comparison.orders.items(), comparison.data
    yield Section(comparison.data, 2, [main_table(order, groups) for order, groups in orders])
    curves: list[Part] = []
    for order, groups in orders:
        curves += [curves_figure(stem, order, groups), *(steps_table(order, groups, k) for k in KS)]
    yield Section("Learning curves", 3, curves)
    gains = gains_table(comparison)
    if gains:
        yield Section("What sleep adds", 3, [*_there(sleep_figure(stem, *some) for some in orders), gains])
    yield Section("Accuracy against cost", 3, [cost_figure(stem, *some) for some in orders])
    sides = sides_table(comparison)
    if sides:
        yield Section("Old and new classes", 3, [*_there(sides_figure(stem, *some) for some in orders), sides])
    yield Section("Where time, FLOPs and bytes go", 3, [costs_table(comparison), bytes_table(comparison)])
    tests: list[Part] = [table for some in orders for table in between_methods(*some)]
    tests += _there([between_orders(comparison)])
    if tests:
        yield Section("Do they differ?", 3, tests)


def _there(parts: Any) -> list[Part]:
    return [part for part in parts if part is not None]


def _runs(results: Results) -> Iterator[Part]:
    if results.unfinished:
        yield _unfinished(results)
    if results.runs:
        commands = dict.fromkeys(_command(run) for run in results.runs)
        yield Listing("Commands, one a run; add --set data.path=... for where the pictures lie", list(commands))
        yield _provenance(results.runs)


def _unfinished(results: Results) -> Table:
    rows = []
    for run in results.unfinished:
        last = run.last
        words = ["0", *[MISSING] * 3]
        if last is not None:
            words = [str(last["step"] + 1), f"{last['classes']:,}", f"{last['top1']:.2f}", f"{last['top5']:.2f}"]
        rows.append([Cell(f"{run.source}/{run.name}"), *map(Cell, words)])
    return Table("Not finished", ["run", "steps so far", "classes", "top-1, %", "top-5, %"], rows)


def _command(run: Run) -> str:
    last = run.last
    known = last.get("command")
    chosen = f"--methods {last['method']} --orders {last['order']['name']} --seeds {last['seed']}"
    return str(known) if known else f"siesta run {last['experiment']}.toml {chosen}"


def _provenance(runs: list[Run]) -> Table:
    rows = []
    for run in runs:
        last = run.last
        words = [str(len(run.steps)), last["config"], str(last["commit"]), str(last["date"])[:16].replace("T", " ")]
        rows.append([Cell(f"{run.source}/{run.path.name}"), *map(Cell, words), Cell(_machine(last["machine"]))])
    return Table("Where they come from", ["run", "steps", "config", "commit", "date (UTC)", "machine"], rows, fold=True)


def _machine(machine: dict[str, Any]) -> str:
    packages = ("python", "torch", "faiss-cpu", "siesta-learn")
    words = [f"{machine.get('cores')} cores {machine.get('processor')}", str(machine.get("system"))]
    return ", ".join([*words, *(f"{name} {machine[name]}" for name in packages if name in machine)])
