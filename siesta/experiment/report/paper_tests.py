"""The paper's own tests: SIESTA against the offline learner, in class-incremental and in iid order, seed by seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from siesta.experiment.report.document import Cell, ReportTable
from siesta.experiment.report.formatting import format_p_value
from siesta.experiment.report.groups import DatasetComparison, SeedGroup
from siesta.experiment.results import KS, FinishedRun
from siesta.experiment.stats import MARGIN, Correct, PairedDifference, cochran, holm, mcnemar, paired_difference

__all__ = ["PaperPair", "cochran_table", "pairs_of_paper", "pairs_table", "seed_pairs"]

_SIESTA = ("siesta", "siesta_paper")
_CLASS_INCREMENTAL, _IID = "class_incremental", "iid"
_LEVEL = 0.05


@dataclass(frozen=True)
class PaperPair:
    """A run against another one, such as SIESTA in class-incremental order against itself in iid order.

    Attributes:
        label: Name of the method, such as that of SIESTA's variant.
        against: Name of the other method, or of the order.
        first: The run of the method.
        second: The other run; of the same seed, or of the lowest seed where that was not measured.
    """

    label: str
    against: str
    first: FinishedRun
    second: FinishedRun

    @property
    def seeds(self) -> str:
        """The seed of both runs, or both seeds if they differ."""
        one, other = _seed(self.first), _seed(self.second)
        return str(one) if one == other else f"{one}, {other}"

    def difference(self, k: int) -> PairedDifference:
        """Return the difference in top-k accuracy, the first minus the second."""
        return paired_difference(_correct(self.first, k), _correct(self.second, k))

    def p(self, k: int) -> float:
        """Return McNemar's p for top-k, uncorrected."""
        return mcnemar(_correct(self.first, k), _correct(self.second, k)).p


def pairs_of_paper(comparison: DatasetComparison) -> list[PaperPair]:
    """Return all pairs that the paper tests, for each variant of SIESTA and each of its seeds."""
    offline = [group for group in comparison.orders.get(_CLASS_INCREMENTAL, []) if group.offline]
    pairs = []
    for siesta in _siestas(comparison, _CLASS_INCREMENTAL):
        others = [(group.label, group) for group in offline]
        others += [(_IID, group) for group in _siestas(comparison, _IID) if group.label == siesta.label]
        pairs += [pair for name, other in others for pair in seed_pairs(siesta, other, name)]
    return pairs


def seed_pairs(first: SeedGroup, second: SeedGroup, against: str) -> list[PaperPair]:
    """Return a pair for each seed of the first group; runs that were tested on different samples are left out."""
    pairs = [PaperPair(first.label, against, run, _partner(run, second)) for run in first.runs]
    return [pair for pair in pairs if np.array_equal(pair.first.samples, pair.second.samples)]


def pairs_table(comparison: DatasetComparison) -> ReportTable | None:
    """Return McNemar's test, uncorrected and corrected, and the interval of the difference, for every pair and k."""
    pairs = pairs_of_paper(comparison)
    if not pairs:
        return None
    rows = [row for k in KS for row in _pair_rows(pairs, k)]
    columns = ["SIESTA", "against", "seed", "k", "difference, points", "95 % interval", "p", "p, Holm", "verdict"]
    note = (
        f"Differences are of SIESTA in class-incremental order minus the other. The margin of equivalence, {MARGIN:g} "
        "point, was fixed before the comparison; a p above 0.05 alone shows no equality. p is McNemar's, and Holm's "
        "correction is for all rows of one k; bold below 0.05."
    )
    return ReportTable("Is SIESTA equal to the offline learner, and blind to order?", columns, rows, note)


def _pair_rows(pairs: Sequence[PaperPair], k: int) -> Iterator[list[Cell]]:
    values = [pair.p(k) for pair in pairs]
    for pair, p, corrected in zip(pairs, values, holm(values), strict=True):
        found = pair.difference(k)
        texts = [pair.label, pair.against, pair.seeds, f"top-{k}", f"{found.points:+.2f}"]
        texts.append(f"{found.low:+.2f} to {found.high:+.2f}")
        tests = [Cell(format_p_value(value), best=value < _LEVEL) for value in (p, corrected)]
        yield [*map(Cell, texts), *tests, Cell(found.verdict)]


def cochran_table(comparison: DatasetComparison) -> ReportTable | None:
    """Return Cochran's Q over SIESTA in both orders and an offline learner, the paper's test, for each seed."""
    rows = [row for pairs in _triples(pairs_of_paper(comparison)) for row in _cochran_rows(*pairs)]
    if not rows:
        return None
    columns = ["SIESTA, in both orders", "and", "seed", "k", "Q", "p"]
    note = "Cochran's Q, uncorrected; bold below 0.05: the three are not equally good."
    return ReportTable("The paper's test: are the three equally good?", columns, rows, note)


def _triples(pairs: Sequence[PaperPair]) -> Iterator[tuple[PaperPair, PaperPair]]:
    """Yield each pair with an offline learner, with the pair of the same run of SIESTA and itself in iid order."""
    iid = {(pair.label, _seed(pair.first)): pair for pair in pairs if pair.against == _IID}
    for pair in pairs:
        other = iid.get((pair.label, _seed(pair.first)))
        if pair.against != _IID and other is not None:
            yield pair, other


def _cochran_rows(offline: PaperPair, iid: PaperPair) -> Iterator[list[Cell]]:
    runs = {"class-incremental": offline.first, "iid": iid.second, "offline": offline.second}
    seeds = list(dict.fromkeys(str(_seed(run)) for run in runs.values()))
    shown = seeds[0] if len(seeds) == 1 else ", ".join(str(_seed(run)) for run in runs.values())
    for k in KS:
        result = cochran({name: _correct(run, k) for name, run in runs.items()})
        texts = (offline.label, offline.against, shown, f"top-{k}", f"{result.statistic:.1f}")
        yield [*map(Cell, texts), Cell(format_p_value(result.p), best=result.p < _LEVEL)]


def _siestas(comparison: DatasetComparison, order: str) -> list[SeedGroup]:
    """Return SIESTA as this package and as the paper has it; its ablations have kinds of their own."""
    groups = comparison.orders.get(order, [])
    return [group for group in groups if group.first.last["kind"] in _SIESTA and group.sleeps]


def _partner(run: FinishedRun, group: SeedGroup) -> FinishedRun:
    return next((other for other in group.runs if _seed(other) == _seed(run)), group.first)


def _seed(run: FinishedRun) -> int:
    return int(run.last["seed"])


def _correct(run: FinishedRun, k: int) -> Correct:
    return run.steps[-1].after.correct(k)
