"""Tables of significance tests between methods, and between orders, on final predictions for the same test samples."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from siesta.experiment.report.document import Cell, ReportTable
from siesta.experiment.report.formatting import format_p_value
from siesta.experiment.report.groups import DatasetComparison, SeedGroup
from siesta.experiment.results import KS, FinishedRun
from siesta.experiment.stats import Correct, SignificanceTests, compare_runs, holm, mcnemar

__all__ = ["SIGNIFICANCE_LEVEL", "method_tests", "order_tests"]

SIGNIFICANCE_LEVEL = 0.05


def method_tests(order: str, groups: Sequence[SeedGroup]) -> list[ReportTable]:
    """Return tests of every pair of methods on one order: a matrix of corrected p-values, and a table of all details.

    Each method is represented by the run with its lowest seed. The list is empty for a single method.
    """
    if len(groups) < 2:
        return []
    tests = {k: _tests(groups, k) for k in KS}
    return [_matrix(order, groups, tests), _pairs_table(order, tests)]


def _tests(groups: Sequence[SeedGroup], k: int) -> SignificanceTests:
    correct = {group.label: _correct(group.first, k) for group in groups}
    return compare_runs(correct, {group.label: group.first.samples for group in groups})


def _correct(run: FinishedRun, k: int) -> Correct:
    return run.steps[-1].after.correct(k)


def _matrix(order: str, groups: Sequence[SeedGroup], tests: dict[int, SignificanceTests]) -> ReportTable:
    """Return corrected p-values, of top-1 above the diagonal and of top-5 below it."""
    labels = [group.label for group in groups]
    cells = {}
    for k, found in tests.items():
        for pair in found.pairs:
            place = (pair.first, pair.second) if k == KS[0] else (pair.second, pair.first)
            cells[place] = Cell(format_p_value(pair.holm), best=pair.holm < SIGNIFICANCE_LEVEL)
    rows = [[Cell(row), *(cells.get((row, column), Cell("")) for column in labels)] for row in labels]
    cochran = "; ".join(
        f"top-{k}: Q = {found.cochran.statistic:.1f}, p {_p_with_sign(found.cochran.p)}" for k, found in tests.items()
    )
    note = (
        f"p of McNemar's test after Holm's correction, on the final predictions ({_seeds(groups)}); above the "
        f"diagonal top-1, below it top-5; bold below {SIGNIFICANCE_LEVEL}. Cochran's Q over all: {cochran}."
    )
    return ReportTable(f"{order}: do methods differ?", ["p", *labels], rows, note)


def _seeds(groups: Sequence[SeedGroup]) -> str:
    """Return the seed of the tested runs, or the seed of each if they differ."""
    seeds = {group.label: group.first.last["seed"] for group in groups}
    if len(set(seeds.values())) == 1:
        return f"seed {groups[0].first.last['seed']}"
    return "seeds: " + ", ".join(f"{label} {seed}" for label, seed in seeds.items())


def _p_with_sign(p: float) -> str:
    return format_p_value(p).replace("<", "< ") if p < 0.001 else f"= {format_p_value(p)}"


def _pairs_table(order: str, tests: dict[int, SignificanceTests]) -> ReportTable:
    rows = []
    for k, found in tests.items():
        for pair in found.pairs:
            counts = (f"{pair.only_first:,}", f"{pair.only_second:,}")
            texts = (f"{pair.first}, {pair.second}", f"top-{k}", *counts, format_p_value(pair.result.p))
            corrected = Cell(format_p_value(pair.holm), best=pair.holm < SIGNIFICANCE_LEVEL)
            rows.append([*map(Cell, texts), corrected])
    columns = ["pair", "k", "only the first correct", "only the second", "p", "p, Holm"]
    samples = next(iter(tests.values())).samples
    return ReportTable(f"{order}: all pairs, {samples:,} test images", columns, rows, collapsible=True)


@dataclass(frozen=True)
class _OrderPair:
    """Runs of one method with the same seed on two orders."""

    label: str
    orders: str
    first: FinishedRun
    second: FinishedRun


def order_tests(comparison: DatasetComparison) -> ReportTable | None:
    """Return tests of each method against itself on another order, for every shared seed; None if there are none."""
    pairs = _order_pairs(comparison)
    if not pairs:
        return None
    rows = [row for k in KS for row in _order_rows(pairs, k)]
    columns = ["method", "orders", "seed", "k", "first, %", "second, %", "p", "p, Holm"]
    note = "McNemar's test on the final predictions, with Holm's correction over all rows of one k; bold below 0.05."
    return ReportTable("Does the order matter?", columns, rows, note)


def _order_pairs(comparison: DatasetComparison) -> list[_OrderPair]:
    return [
        _OrderPair(group.label, f"{group.order}, {other.order}", first, second)
        for group, other in itertools.combinations(comparison.groups(), 2)
        if group.label == other.label
        for first in group.runs
        for second in other.runs
        if first.last["seed"] == second.last["seed"] and np.array_equal(first.samples, second.samples)
    ]


def _order_rows(pairs: Sequence[_OrderPair], k: int) -> list[list[Cell]]:
    results = [mcnemar(_correct(pair.first, k), _correct(pair.second, k)) for pair in pairs]
    corrected = holm([result.p for result in results])
    rows = []
    for pair, result, p in zip(pairs, results, corrected, strict=True):
        accuracies = [f"{run.metrics[k].after[-1]:.2f}" for run in (pair.first, pair.second)]
        seed = str(pair.first.last["seed"])
        texts = (pair.label, pair.orders, seed, f"top-{k}", *accuracies, format_p_value(result.p))
        rows.append([*map(Cell, texts), Cell(format_p_value(p), best=p < SIGNIFICANCE_LEVEL)])
    return rows
