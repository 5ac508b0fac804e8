"""Whether runs really differ: Cochran's Q over all of them, McNemar's test over each pair, on the same test samples.

Needs statsmodels, which comes with the extra `harness`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput

__all__ = ["EXACT_BELOW", "Comparison", "Outcome", "Pair", "cochran", "compare", "holm", "mcnemar"]

EXACT_BELOW = 25
"""With fewer samples than this on which two runs differ, chi-square is too rough and the binomial test is taken."""

Correct = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Outcome:
    """A test's result: `p` is the probability of such differences between runs that are equally good."""

    test: str
    statistic: float
    p: float


@dataclass(frozen=True)
class Pair:
    """McNemar's test of two runs.

    Attributes:
        first: Name of a run.
        second: Name of the other.
        only_first: Samples that only the first got right.
        only_second: Samples that only the second got right.
        outcome: Of this pair alone.
        holm: p after Holm's correction for all pairs of the comparison.
    """

    first: str
    second: str
    only_first: int
    only_second: int
    outcome: Outcome
    holm: float


@dataclass(frozen=True)
class Comparison:
    """Cochran's Q over all runs and McNemar's test over each pair of them."""

    samples: int
    cochran: Outcome
    pairs: list[Pair]


def compare(runs: Mapping[str, Correct], samples: Mapping[str, npt.NDArray[np.integer]] | None = None) -> Comparison:
    """Tests all runs against each other.

    Args:
        runs: Whether each run got each test sample right, (n,); by top-1 or by top-5.
        samples: Which test samples these are, (n,), to make sure that they are the same.
    """
    _check(runs, samples or {})
    pairs = list(itertools.combinations(runs, 2))
    outcomes = [mcnemar(runs[first], runs[second]) for first, second in pairs]
    corrected = holm([some.p for some in outcomes])
    return Comparison(
        samples=len(next(iter(runs.values()))),
        cochran=cochran(runs),
        pairs=[
            Pair(first, second, *_discordant(runs[first], runs[second]), outcome, p)
            for (first, second), outcome, p in zip(pairs, outcomes, corrected, strict=True)
        ],
    )


def holm(values: Sequence[float]) -> list[float]:
    """The p-values of several tests, corrected for their number."""
    return [float(p) for p in _statsmodels("stats.multitest").multipletests(values, method="holm")[1]]


def cochran(runs: Mapping[str, Correct]) -> Outcome:
    """Cochran's Q of two or more runs; of two it is McNemar's chi-square without correction."""
    _check(runs, {})
    table = np.stack([some.astype(int) for some in runs.values()], axis=1)  # (n, runs)
    if (table == table[:, :1]).all():  # nobody differs: 0 / 0
        return Outcome("Cochran's Q", 0.0, 1.0)
    result = _statsmodels("stats.contingency_tables").cochrans_q(table)
    return Outcome("Cochran's Q", float(result.statistic), float(result.pvalue))


def mcnemar(first: Correct, second: Correct, *, exact: bool | None = None) -> Outcome:
    """McNemar's test of two runs on the same samples, each (n,).

    Args:
        first: Whether one run got each sample right.
        second: Whether the other did.
        exact: True for the binomial test, False for chi-square with continuity correction; None takes the binomial
            test when the runs differ on fewer than `EXACT_BELOW` samples.
    """
    _check({"first": first, "second": second}, {})
    only_first, only_second = _discordant(first, second)
    exact = only_first + only_second < EXACT_BELOW if exact is None else exact
    name = "McNemar, exact" if exact else "McNemar, chi-square with continuity correction"
    if only_first == only_second:  # statsmodels divides by zero, or corrects a difference of nothing
        return Outcome(name, float(only_first) if exact else 0.0, 1.0)
    table = [[0, only_first], [only_second, 0]]  # samples on which both agree play no part
    result = _statsmodels("stats.contingency_tables").mcnemar(table, exact=exact, correction=True)
    return Outcome(name, float(result.statistic), float(result.pvalue))


def _discordant(first: Correct, second: Correct) -> tuple[int, int]:
    """How many only the first got right, and only the second."""
    return int((first & ~second).sum()), int((second & ~first).sum())


def _check(runs: Mapping[str, Correct], samples: Mapping[str, npt.NDArray[np.integer]]) -> None:
    if len(runs) < 2:
        raise BadInput("a comparison needs two runs or more: name another one")
    for name, correct in runs.items():
        if correct.ndim != 1 or correct.dtype != np.bool_ or not len(correct):
            raise BadInput(f"'{name}' does not say right or wrong for each test sample: give (n,) of True and False")
    reference, *others = runs
    for name in others:
        if len(runs[name]) != len(runs[reference]) or (
            samples and not np.array_equal(samples[name], samples[reference])
        ):
            raise BadInput(
                f"'{reference}' and '{name}' were tested on different samples: compare runs of one test set and step"
            )


def _statsmodels(name: str) -> ModuleType:
    """A module of statsmodels; imported late, since only tests of significance need it."""
    import importlib

    try:
        return importlib.import_module(f"statsmodels.{name}")
    except ImportError as error:
        raise BadInput("tests of significance need statsmodels: pip install 'siesta-learn[harness]'") from error
