"""Tests of significance against the formulas written out, scipy, and examples from textbooks."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, chi2
from statsmodels.stats.weightstats import DescrStatsW

from siesta.errors import BadInput
from siesta.experiment.stats import (
    EXACT_BELOW,
    MARGIN,
    PairedDifference,
    cochran,
    compare_runs,
    holm,
    mcnemar,
    paired_difference,
)

Correct = npt.NDArray[np.bool_]


def two_runs(both: int, only_first: int, only_second: int, neither: int) -> tuple[Correct, Correct]:
    counts = [both, only_first, only_second, neither]
    return np.repeat([True, True, False, False], counts), np.repeat([True, False, True, False], counts)


counts = st.integers(0, 60)


@given(counts, counts, counts, counts)
def test_mcnemar_against_the_formulas(both: int, b: int, c: int, neither: int) -> None:
    if both + b + c + neither == 0:
        return
    first, second = two_runs(both, b, c, neither)
    exact = mcnemar(first, second, exact=True)
    assert exact.p == pytest.approx(binomtest(b, b + c).pvalue if b + c else 1)
    assert exact.statistic == min(b, c)
    rough = mcnemar(first, second, exact=False)
    statistic = max(abs(b - c) - 1, 0) ** 2 / (b + c) if b + c else 0
    assert rough.statistic == pytest.approx(statistic)
    assert rough.p == pytest.approx(chi2.sf(statistic, 1))
    assert mcnemar(first, second) == (exact if b + c < EXACT_BELOW else rough)
    assert mcnemar(second, first).p == pytest.approx(mcnemar(first, second).p)


def test_mcnemar_on_agresti_s_approval_ratings() -> None:
    """Agresti, Categorical Data Analysis: 794 approve twice, 150 and 86 change their mind, 570 disapprove twice."""
    first, second = two_runs(794, 150, 86, 570)
    result = mcnemar(first, second)
    assert result.statistic == pytest.approx((150 - 86 - 1) ** 2 / 236)
    assert result.statistic == pytest.approx(16.82, abs=0.005)
    assert result.p < 0.0001


def test_cochran_on_a_table_by_hand() -> None:
    """Twelve cases, three treatments (Conover's formula): Q = (k-1)(k sum C^2 - N^2) / (k N - sum R^2)."""
    cases = "111 111 010 110 000 111 111 110 001 010 111 111"
    table = np.array([[int(some) for some in case] for case in cases.split()])
    columns = table.sum(axis=0)
    rows = table.sum(axis=1)
    total = table.sum()
    expected = 2 * (3 * (columns**2).sum() - total**2) / (3 * total - (rows**2).sum())
    assert expected == pytest.approx(2.8)  # Conover, Practical Nonparametric Statistics, the three sportsmen
    result = cochran({name: table[:, index].astype(bool) for index, name in enumerate("abc")})
    assert result.statistic == pytest.approx(expected)
    assert result.p == pytest.approx(chi2.sf(expected, 2))


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 40))
def test_cochran_against_the_formula(seed: int, runs: int, n: int) -> None:
    table = np.random.default_rng(seed).integers(2, size=(n, runs))
    columns = table.sum(axis=0)
    rows = table.sum(axis=1)
    total = table.sum()
    below = runs * total - (rows**2).sum()
    expected = (runs - 1) * (runs * (columns**2).sum() - total**2) / below if below else 0
    result = cochran({str(index): table[:, index].astype(bool) for index in range(runs)})
    assert result.statistic == pytest.approx(expected, abs=1e-9)
    assert result.p == pytest.approx(chi2.sf(expected, runs - 1))


def test_compare_takes_every_pair_and_corrects_by_holm() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(400)
    runs = {name: truth + rng.normal(0, 0.2, 400) > cut for name, cut in (("a", 0.3), ("b", 0.33), ("c", 0.6))}
    found = compare_runs(runs, {name: np.arange(400) for name in runs})
    assert found.samples == 400
    assert [(pair.first, pair.second) for pair in found.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found.cochran == cochran(runs)
    for pair in found.pairs:
        first, second = runs[pair.first], runs[pair.second]
        assert pair.result == mcnemar(first, second)
        assert (pair.only_first, pair.only_second) == (
            sum(one and not other for one, other in zip(first, second, strict=True)),
            sum(other and not one for one, other in zip(first, second, strict=True)),
        )
    ordered = sorted(found.pairs, key=lambda pair: pair.result.p)
    step_down = [min(1, (3 - rank) * pair.result.p) for rank, pair in enumerate(ordered)]
    assert [pair.holm for pair in ordered] == pytest.approx(np.maximum.accumulate(step_down))


def test_a_difference_by_hand() -> None:
    """Of 100 samples 12 are right in the first run only and 5 in the second: d = 7, and Bonett and Price's interval."""
    found = paired_difference(*two_runs(60, 12, 5, 23))
    assert found.points == pytest.approx(7.0)
    one, other = 13 / 102, 6 / 102
    half = 1.959964 * np.sqrt((one + other - (one - other) ** 2) / 102)
    assert (found.low, found.high) == pytest.approx((100 * (one - other - half), 100 * (one - other + half)))
    assert paired_difference(*two_runs(60, 5, 12, 23)) == PairedDifference(-found.points, -found.high, -found.low)


@pytest.mark.parametrize("cells", [(4000, 200, 150, 1444), (5000, 30, 60, 704), (3000, 500, 500, 1794)])
def test_the_interval_is_that_of_statsmodels_for_many_samples(cells: tuple[int, int, int, int]) -> None:
    first, second = two_runs(*cells)
    found = paired_difference(first, second)
    expected = DescrStatsW(100.0 * (first.astype(float) - second.astype(float))).tconfint_mean()
    assert (found.low, found.high) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("size", [60, 2000])
def test_the_interval_covers_the_true_difference_in_95_of_100_draws(size: int) -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(1500):
        cell = rng.choice(4, size, p=[0.6, 0.14, 0.1, 0.16])  # both, only the first, only the second, neither
        found = paired_difference(cell <= 1, (cell == 0) | (cell == 2))
        covered += found.low <= 100 * (0.14 - 0.1) <= found.high
    assert 0.935 < covered / 1500 < 0.97


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-0.9, 0.8, "equivalent within one point"),
        (0.1, 0.9, "equivalent within one point"),  # certainly smaller than the margin
        (-1.0, 0.5, "undecided"),
        (-1.2, 0.3, "undecided"),
        (-4.0, 3.0, "undecided"),
        (0.2, 1.4, "different"),
        (-5.0, -3.0, "different"),
    ],
)
def test_verdicts(low: float, high: float, verdict: str) -> None:
    assert MARGIN == 1.0
    assert PairedDifference((low + high) / 2, low, high).verdict == verdict


def test_no_significance_is_not_equality() -> None:
    first, second = two_runs(20, 6, 4, 10)
    assert mcnemar(first, second).p > 0.5
    assert paired_difference(first, second).verdict == "undecided"


def test_equal_runs_do_not_differ() -> None:
    same = np.array([True, False, True])
    found = compare_runs({"a": same, "b": same.copy(), "c": same.copy()})
    assert found.cochran.p == 1
    assert all(pair.result.p == pair.holm == 1 for pair in found.pairs)


def test_runs_on_different_samples_are_refused() -> None:
    a, b = np.array([True, False]), np.array([True, False])
    with pytest.raises(BadInput, match="'a' and 'b' were tested on different samples"):
        compare_runs({"a": a, "b": np.array([True])})
    with pytest.raises(BadInput, match="different samples"):
        compare_runs({"a": a, "b": b}, {"a": np.array([3, 4]), "b": np.array([3, 5])})


@pytest.mark.parametrize("wrong", [np.zeros((2, 2), dtype=bool), np.array([0, 1]), np.zeros(0, dtype=bool)])
def test_arrays_that_are_not_boolean_vectors_are_refused(wrong: Correct) -> None:
    with pytest.raises(BadInput, match="'b' must say for each test sample"):
        compare_runs({"a": np.array([True, False]), "b": wrong})


def test_a_single_run_cannot_be_tested() -> None:
    with pytest.raises(BadInput, match="two runs"):
        compare_runs({"a": np.array([True])})


def test_without_statsmodels_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "statsmodels"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    with pytest.raises(BadInput, match=r"pip install 'siesta-learn\[harness\]'"):
        mcnemar(*two_runs(1, 2, 3, 4))


@pytest.fixture(scope="module")
def _no_garbage_collection() -> Iterator[None]:
    """statsmodels collects garbage at each call of multipletests, which takes most of its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "collect", lambda: 0)
        yield


@pytest.mark.usefixtures("_no_garbage_collection")
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_against_its_definition(values: list[float]) -> None:
    """The smallest p times n, the next times n - 1, ...; never below one before it, never above one."""
    expected, before = {}, 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=lambda place: values[place])):
        before = max(before, min(1.0, (len(values) - rank) * values[place]))
        expected[place] = before
    assert holm(values) == pytest.approx([expected[place] for place in range(len(values))])
