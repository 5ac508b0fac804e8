"""Tests of significance against the formulas written out, scipy, and examples from textbooks."""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, chi2

from siesta.errors import BadInput
from siesta.experiment.stats import EXACT_BELOW, cochran, compare, holm, mcnemar

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
    outcome = mcnemar(first, second)
    assert outcome.statistic == pytest.approx((150 - 86 - 1) ** 2 / 236)
    assert outcome.statistic == pytest.approx(16.82, abs=0.005)
    assert outcome.p < 0.0001


def test_cochran_on_a_table_by_hand() -> None:
    """Twelve cases, three treatments (Conover's formula): Q = (k-1)(k sum C^2 - N^2) / (k N - sum R^2)."""
    cases = "111 111 010 110 000 111 111 110 001 010 111 111"
    table = np.array([[int(some) for some in case] for case in cases.split()])
    columns, rows, total = table.sum(axis=0), table.sum(axis=1), table.sum()
    expected = 2 * (3 * (columns**2).sum() - total**2) / (3 * total - (rows**2).sum())
    assert expected == pytest.approx(2.8)  # Conover, Practical Nonparametric Statistics, the three sportsmen
    outcome = cochran({name: table[:, index].astype(bool) for index, name in enumerate("abc")})
    assert outcome.statistic == pytest.approx(expected)
    assert outcome.p == pytest.approx(chi2.sf(expected, 2))


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 40))
def test_cochran_against_the_formula(seed: int, runs: int, n: int) -> None:
    table = np.random.default_rng(seed).integers(2, size=(n, runs))
    columns, rows, total = table.sum(axis=0), table.sum(axis=1), table.sum()
    below = runs * total - (rows**2).sum()
    expected = (runs - 1) * (runs * (columns**2).sum() - total**2) / below if below else 0
    outcome = cochran({str(index): table[:, index].astype(bool) for index in range(runs)})
    assert outcome.statistic == pytest.approx(expected, abs=1e-9)
    assert outcome.p == pytest.approx(chi2.sf(expected, runs - 1))


def test_compare_takes_every_pair_and_corrects_by_holm() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(400)
    runs = {name: truth + rng.normal(0, 0.2, 400) > cut for name, cut in (("a", 0.3), ("b", 0.33), ("c", 0.6))}
    found = compare(runs, {name: np.arange(400) for name in runs})
    assert found.samples == 400
    assert [(pair.first, pair.second) for pair in found.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found.cochran == cochran(runs)
    for pair in found.pairs:
        first, second = runs[pair.first], runs[pair.second]
        assert pair.outcome == mcnemar(first, second)
        assert (pair.only_first, pair.only_second) == (
            sum(one and not other for one, other in zip(first, second, strict=True)),
            sum(other and not one for one, other in zip(first, second, strict=True)),
        )
    ordered = sorted(found.pairs, key=lambda pair: pair.outcome.p)
    step_down = [min(1, (3 - rank) * pair.outcome.p) for rank, pair in enumerate(ordered)]
    assert [pair.holm for pair in ordered] == pytest.approx(np.maximum.accumulate(step_down))


def test_runs_that_never_differ() -> None:
    same = np.array([True, False, True])
    found = compare({"a": same, "b": same.copy(), "c": same.copy()})
    assert found.cochran.p == 1
    assert all(pair.outcome.p == pair.holm == 1 for pair in found.pairs)


def test_runs_on_different_samples_are_refused() -> None:
    a, b = np.array([True, False]), np.array([True, False])
    with pytest.raises(BadInput, match="'a' and 'b' were tested on different samples"):
        compare({"a": a, "b": np.array([True])})
    with pytest.raises(BadInput, match="different samples"):
        compare({"a": a, "b": b}, {"a": np.array([3, 4]), "b": np.array([3, 5])})


@pytest.mark.parametrize("wrong", [np.zeros((2, 2), dtype=bool), np.array([0, 1]), np.zeros(0, dtype=bool)])
def test_what_is_not_right_or_wrong_is_refused(wrong: Correct) -> None:
    with pytest.raises(BadInput, match="'b' does not say right or wrong"):
        compare({"a": np.array([True, False]), "b": wrong})


def test_one_run_cannot_be_compared() -> None:
    with pytest.raises(BadInput, match="two runs"):
        compare({"a": np.array([True])})


def test_without_statsmodels_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "statsmodels"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    with pytest.raises(BadInput, match=r"pip install 'siesta-learn\[harness\]'"):
        mcnemar(*two_runs(1, 2, 3, 4))


@settings(max_examples=25)  # statsmodels collects garbage at each call, which takes long
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_against_its_definition(values: list[float]) -> None:
    """The smallest p times n, the next times n - 1, ...; never below one before it, never above one."""
    expected, before = {}, 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=lambda place: values[place])):
        before = max(before, min(1.0, (len(values) - rank) * values[place]))
        expected[place] = before
    assert holm(values) == pytest.approx([expected[place] for place in range(len(values))])
