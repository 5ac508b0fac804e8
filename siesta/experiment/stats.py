"""Significance tests between runs on the same test samples: Cochran's Q over all of them, McNemar's test for each pair.

A test that finds no difference does not show that runs are equal: `paired_difference` gives the interval that does.

Requires statsmodels, which is part of the extra `harness`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput

__all__ = [
    "EXACT_BELOW",
    "MARGIN",
    "Correct",
    "PairedDifference",
    "PairwiseResult",
    "SignificanceResult",
    "SignificanceTests",
    "cochran",
    "compare_runs",
    "holm",
    "mcnemar",
    "paired_difference",
]

EXACT_BELOW = 25
"""McNemar's test is binomial if fewer samples than this tell two runs apart: chi-square is too inexact for so few."""

MARGIN = 1.0
"""Points of accuracy within which two runs count as equivalent; fixed before any run was compared."""

_QUANTILE = 1.959964  # of the normal distribution: 95 % lie within plus and minus it

Correct = npt.NDArray[np.bool_]
"""Whether a run classified each test sample correctly, (n,)."""


@dataclass(frozen=True)
class SignificanceResult:
    """The result of a test; `p` is the probability of differences this large between equally good runs."""

    test: str
    statistic: float
    p: float


@dataclass(frozen=True)
class PairwiseResult:
    """McNemar's test of two runs.

    Attributes:
        first: Name of one run.
        second: Name of the other run.
        only_first: Number of samples that only the first run classified correctly.
        only_second: Number of samples that only the second run classified correctly.
        result: The test of this pair, uncorrected.
        holm: p after Holm's correction for all pairs.
    """

    first: str
    second: str
    only_first: int
    only_second: int
    result: SignificanceResult
    holm: float


@dataclass(frozen=True)
class PairedDifference:
    """Accuracy of one run minus that of another, in points, with its 95 % interval from `low` to `high`."""

    points: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """What the interval shows: equivalence where all of it is within the margin, difference where it excludes 0.

        A difference that is certainly smaller than the margin is equivalence, even where the interval excludes 0.
        """
        if self.low > -MARGIN and self.high < MARGIN:
            return "equivalent within one point"
        return "different" if self.low > 0 or self.high < 0 else "undecided"


@dataclass(frozen=True)
class SignificanceTests:
    """Cochran's Q over all runs and McNemar's test for each pair of them."""

    samples: int
    cochran: SignificanceResult
    pairs: list[PairwiseResult]


def compare_runs(
    runs: Mapping[str, Correct], samples: Mapping[str, npt.NDArray[np.integer]] | None = None
) -> SignificanceTests:
    """Test all runs against each other.

    Args:
        runs: Whether each run classified each test sample correctly, (n,), by top-1 or by top-5.
        samples: Indices of these test samples, (n,), to verify that all runs have the same.
    """
    _check(runs, samples or {})
    pairs = list(itertools.combinations(runs, 2))
    results = [mcnemar(runs[first], runs[second]) for first, second in pairs]
    corrected = holm([result.p for result in results])
    return SignificanceTests(
        samples=len(next(iter(runs.values()))),
        cochran=cochran(runs),
        pairs=[
            PairwiseResult(first, second, *_discordant(runs[first], runs[second]), result, p)
            for (first, second), result, p in zip(pairs, results, corrected, strict=True)
        ],
    )


def holm(values: Sequence[float]) -> list[float]:
    """Return the p-values of several tests after Holm's correction for their number."""
    return [float(p) for p in _statsmodels("stats.multitest").multipletests(values, method="holm")[1]]


def cochran(runs: Mapping[str, Correct]) -> SignificanceResult:
    """Return Cochran's Q for two or more runs; for two it equals McNemar's chi-square without correction."""
    _check(runs, {})
    table = np.stack([correct.astype(int) for correct in runs.values()], axis=1)  # (n, runs)
    if (table == table[:, :1]).all():  # no run differs: the formula is 0 / 0
        return SignificanceResult("Cochran's Q", 0.0, 1.0)
    result = _statsmodels("stats.contingency_tables").cochrans_q(table)
    return SignificanceResult("Cochran's Q", float(result.statistic), float(result.pvalue))


def mcnemar(first: Correct, second: Correct, *, exact: bool | None = None) -> SignificanceResult:
    """Return McNemar's test of two runs on the same samples, each (n,).

    Args:
        first: Whether one run classified each sample correctly.
        second: Whether the other run did.
        exact: True for the binomial test, False for chi-square with continuity correction; None selects the binomial
            test if the runs differ on fewer than `EXACT_BELOW` samples.
    """
    _check({"first": first, "second": second}, {})
    only_first, only_second = _discordant(first, second)
    exact = only_first + only_second < EXACT_BELOW if exact is None else exact
    name = "McNemar, exact" if exact else "McNemar, chi-square with continuity correction"
    if only_first == only_second:  # statsmodels divides by zero, or corrects a difference of zero
        return SignificanceResult(name, float(only_first) if exact else 0.0, 1.0)
    table = [[0, only_first], [only_second, 0]]  # samples on which both agree do not enter the test
    result = _statsmodels("stats.contingency_tables").mcnemar(table, exact=exact, correction=True)
    return SignificanceResult(name, float(result.statistic), float(result.pvalue))


def paired_difference(first: Correct, second: Correct) -> PairedDifference:
    """Return the difference of two runs on the same samples, each (n,), with an interval over samples.

    The interval is Bonett and Price's (2012): Wald's for paired proportions with one sample more in each of the two
    cells that differ, so that runs that hardly differ have an interval, too.

    Example:
        >>> found = paired_difference(np.array([True] * 90 + [False] * 10), np.array([False] * 10 + [True] * 90))
        >>> found.points, round(found.low, 2), round(found.high, 2), found.verdict
        (0.0, -9.01, 9.01, 'undecided')
    """
    _check({"first": first, "second": second}, {})
    only_first, only_second = _discordant(first, second)
    samples = len(first)
    share_first, share_second = (only_first + 1) / (samples + 2), (only_second + 1) / (samples + 2)
    centre = share_first - share_second
    half = _QUANTILE * math.sqrt((share_first + share_second - centre**2) / (samples + 2))
    points = 100 * (only_first - only_second) / samples
    return PairedDifference(points, 100 * (centre - half), 100 * (centre + half))


def _discordant(first: Correct, second: Correct) -> tuple[int, int]:
    """Return how many samples only the first run classified correctly, and only the second."""
    return int((first & ~second).sum()), int((second & ~first).sum())


def _check(runs: Mapping[str, Correct], samples: Mapping[str, npt.NDArray[np.integer]]) -> None:
    if len(runs) < 2:
        raise BadInput(f"significance tests need two runs or more, not {len(runs)}: add another one")
    for name, correct in runs.items():
        if correct.ndim != 1 or correct.dtype != np.bool_ or not len(correct):
            raise BadInput(
                f"'{name}' must say for each test sample whether it was classified correctly, not an array of "
                f"{correct.dtype} of shape {correct.shape}: give (n,) of True and False"
            )
    reference, *others = runs
    for name in others:
        same_length = len(runs[name]) == len(runs[reference])
        if not same_length or (samples and not np.array_equal(samples[name], samples[reference])):
            raise BadInput(
                f"'{reference}' and '{name}' were tested on different samples: compare runs of one test set and step"
            )


def _statsmodels(name: str) -> ModuleType:
    """Import a module of statsmodels; late, since only significance tests need it."""
    import importlib

    try:
        return importlib.import_module(f"statsmodels.{name}")
    except ImportError as error:
        raise BadInput("significance tests need statsmodels: pip install 'siesta-learn[harness]'") from error
