"""Whether methods, and orders, really differ: tests on the final answers to the same test samples."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from siesta.experiment.report.document import Cell, Table
from siesta.experiment.report.groups import Comparison, Group
from siesta.experiment.report.numbers import probability
from siesta.experiment.results import KS, Run
from siesta.experiment.stats import Comparison as Tested
from siesta.experiment.stats import Correct, compare, holm, mcnemar

__all__ = ["LEVEL", "between_methods", "between_orders"]

LEVEL = 0.05
"""Below this a difference is called one."""


def between_methods(order: str, groups: Sequence[Group]) -> list[Table]:
    """Every pair of methods on one order, each by its lowest seed: a square to look at and all figures below it."""
    if len(groups) < 2:
        return []
    tested = {k: _tested(groups, k) for k in KS}
    return [_square(order, groups, tested), _pairs(order, tested)]


def _tested(groups: Sequence[Group], k: int) -> Tested:
    correct = {group.label: _correct(group.first, k) for group in groups}
    return compare(correct, {group.label: group.first.samples for group in groups})


def _correct(run: Run, k: int) -> Correct:
    return run.steps[-1].after.correct(k)


def _square(order: str, groups: Sequence[Group], tested: dict[int, Tested]) -> Table:
    labels = [group.label for group in groups]
    cells = {}
    for k, found in tested.items():
        for pair in found.pairs:
            place = (pair.first, pair.second) if k == KS[0] else (pair.second, pair.first)
            cells[place] = Cell(probability(pair.holm), best=pair.holm < LEVEL)
    rows = [[Cell(one), *(cells.get((one, other), Cell("")) for other in labels)] for one in labels]
    cochran = "; ".join(
        f"top-{k}: Q = {found.cochran.statistic:.1f}, p {_equals(found.cochran.p)}" for k, found in tested.items()
    )
    seeds = ", ".join(f"{group.label} {group.first.last['seed']}" for group in groups)
    alike = len({group.first.last["seed"] for group in groups}) == 1
    who = f"seed {groups[0].first.last['seed']}" if alike else f"seeds: {seeds}"
    note = (
        f"p of McNemar's test after Holm's correction, on the final answers ({who}); above the diagonal top-1, below "
        f"it top-5; bold below {LEVEL}. Cochran's Q over all: {cochran}."
    )
    return Table(f"{order}: do methods differ?", ["p", *labels], rows, note)


def _equals(p: float) -> str:
    return probability(p).replace("<", "< ") if p < 0.001 else f"= {probability(p)}"


def _pairs(order: str, tested: dict[int, Tested]) -> Table:
    rows = [
        [
            Cell(f"{pair.first}, {pair.second}"),
            *map(Cell, (f"top-{k}", f"{pair.only_first:,}", f"{pair.only_second:,}", probability(pair.outcome.p))),
            Cell(probability(pair.holm), best=pair.holm < LEVEL),
        ]
        for k, found in tested.items()
        for pair in found.pairs
    ]
    columns = ["pair", "k", "only the first right", "only the second", "p", "p, Holm"]
    samples = next(iter(tested.values())).samples
    return Table(f"{order}: all pairs, {samples:,} test pictures", columns, rows, fold=True)


def between_orders(comparison: Comparison) -> Table | None:
    """Each method against itself on another order, for every seed that both have; None without such."""
    found = [
        (first, second, one, other)
        for first, second in itertools.combinations(comparison.groups(), 2)
        if first.label == second.label
        for one in first.runs
        for other in second.runs
        if one.last["seed"] == other.last["seed"] and np.array_equal(one.samples, other.samples)
    ]
    if not found:
        return None
    rows = []
    for k in KS:
        outcomes = [mcnemar(_correct(one, k), _correct(other, k)) for *_, one, other in found]
        for (first, second, one, other), outcome, p in zip(
            found, outcomes, holm([some.p for some in outcomes]), strict=True
        ):
            accuracies = [f"{run.summaries[k].after[-1]:.2f}" for run in (one, other)]
            words = (f"{first.order}, {second.order}", str(one.last["seed"]), f"top-{k}", *accuracies)
            rows.append(
                [Cell(first.label), *map(Cell, (*words, probability(outcome.p))), Cell(probability(p), best=p < LEVEL)]
            )
    columns = ["method", "orders", "seed", "k", "first, %", "second, %", "p", "p, Holm"]
    note = "McNemar's test on the final answers, with Holm's correction over all rows of one k; bold below 0.05."
    return Table("Does the order matter?", columns, rows, note)
