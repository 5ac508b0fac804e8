"""The structure of a report: which tables and figures it has, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from siesta.experiment.report.document import Block, Cell, CodeListing, ReportDocument, ReportSection, ReportTable
from siesta.experiment.report.figures import cost_figure, curves_figure, old_new_figure, sleep_figure
from siesta.experiment.report.formatting import MISSING
from siesta.experiment.report.groups import DatasetComparison, group_by_dataset
from siesta.experiment.report.paper_tests import cochran_table, pairs_table
from siesta.experiment.report.significance import method_tests, order_tests
from siesta.experiment.report.tables import (
    bytes_table,
    costs_table,
    gains_table,
    main_table,
    old_new_table,
    steps_table,
)
from siesta.experiment.results import KS, FinishedRun, Results

__all__ = ["build_report"]


def build_report(results: Results) -> ReportDocument:
    """Return the report on some results."""
    comparisons = group_by_dataset(results.runs)
    sections = [section for comparison in comparisons for section in _sections(comparison)]
    names = sorted({str(run.last["experiment"]) for run in results.runs} or {run.source for run in results.unfinished})
    return ReportDocument(
        title=f"siesta: {', '.join(names)}",
        lead=_lead(results),
        sections=[*sections, ReportSection("Runs", 2, list(_run_blocks(results)))],
    )


def _lead(results: Results) -> str:
    lead = "No run is finished yet."
    if results.runs:
        count = f"{len(results.runs)} finished run{'s' if len(results.runs) > 1 else ''}"
        lead = f"{count}. Every accuracy is computed from the stored predictions for all test images."
    if results.unfinished:
        lead += f" {len(results.unfinished)} not finished: listed under Runs, and in no table or figure above it."
    return lead


def _sections(comparison: DatasetComparison) -> Iterator[ReportSection]:
    orders = comparison.orders.items()
    stem = comparison.data
    yield ReportSection(comparison.data, 2, [main_table(order, groups) for order, groups in orders])
    curves: list[Block] = []
    for order, groups in orders:
        curves += [curves_figure(stem, order, groups), *(steps_table(order, groups, k) for k in KS)]
    yield ReportSection("Learning curves", 3, curves)
    gains = gains_table(comparison)
    if gains:
        figures = _present(sleep_figure(stem, order, groups) for order, groups in orders)
        yield ReportSection("What sleep adds", 3, [*figures, gains])
    cost_figures = [cost_figure(stem, order, groups) for order, groups in orders]
    yield ReportSection("Accuracy against cost", 3, cost_figures)
    old_new = old_new_table(comparison)
    if old_new:
        figures = _present(old_new_figure(stem, order, groups) for order, groups in orders)
        yield ReportSection("Old and new classes", 3, [*figures, old_new])
    yield ReportSection("Where time, FLOPs and bytes go", 3, [costs_table(comparison), bytes_table(comparison)])
    tests: list[Block] = [table for order, groups in orders for table in method_tests(order, groups)]
    tests += _present([pairs_table(comparison), cochran_table(comparison), order_tests(comparison)])
    if tests:
        yield ReportSection("Do they differ?", 3, tests)


def _present(blocks: Iterable[Block | None]) -> list[Block]:
    return [block for block in blocks if block is not None]


def _run_blocks(results: Results) -> Iterator[Block]:
    if results.unfinished:
        yield _unfinished_table(results)
    if results.runs:
        commands = dict.fromkeys(_command(run) for run in results.runs)
        title = "Commands, one per run; add --set data.path=... with the location of the data"
        yield CodeListing(title, list(commands))
        yield _provenance_table(results.runs)


def _unfinished_table(results: Results) -> ReportTable:
    rows = []
    for run in results.unfinished:
        last = run.last
        texts = ["0", *[MISSING] * 3]
        if last is not None:
            texts = [str(last["step"] + 1), f"{last['classes']:,}", f"{last['top1']:.2f}", f"{last['top5']:.2f}"]
        rows.append([Cell(f"{run.source}/{run.name}"), *map(Cell, texts)])
    return ReportTable("Not finished", ["run", "steps so far", "classes", "top-1, %", "top-5, %"], rows)


def _command(run: FinishedRun) -> str:
    """Return the command of a run; rows of the first versions do not have it, so it is derived from the others."""
    last = run.last
    recorded = last.get("command")
    selection = f"--methods {last['method']} --orders {last['order']['name']} --seeds {last['seed']}"
    return str(recorded) if recorded else f"siesta run {last['experiment']}.toml {selection}"


def _provenance_table(runs: list[FinishedRun]) -> ReportTable:
    rows = []
    for run in runs:
        last = run.last
        date = str(last["date"])[:16].replace("T", " ")
        texts = [str(len(run.steps)), last["config"], str(last["commit"]), date, _machine(last["machine"])]
        rows.append([Cell(f"{run.source}/{run.path.name}"), *map(Cell, texts)])
    columns = ["run", "steps", "config", "commit", "date (UTC)", "machine"]
    return ReportTable("Provenance", columns, rows, collapsible=True)


def _machine(machine: dict[str, Any]) -> str:
    packages = ("python", "torch", "faiss-cpu", "siesta-learn")
    hardware = [f"{machine.get('cores')} cores {machine.get('processor')}", str(machine.get("system"))]
    return ", ".join([*hardware, *(f"{name} {machine[name]}" for name in packages if name in machine)])
