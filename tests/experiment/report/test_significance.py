"""Significance tables against scipy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from siesta.experiment.report.formatting import format_p_value
from siesta.experiment.report.groups import group_by_dataset
from siesta.experiment.report.significance import SIGNIFICANCE_LEVEL, method_tests, order_tests
from siesta.experiment.results import read_results
from tests.experiment.written_runs import write_run


def correct(out: Path, run: str, name: str, k: int) -> Any:
    with np.load(out / "runs" / run / "predictions" / f"{name}.npz") as arrays:
        return (arrays["top"][:, :k] == arrays["truth"][:, None]).any(axis=1)


def mcnemar(first: Any, second: Any) -> float:
    """By the book: binomial below 25 samples that differ, else chi-square with continuity correction."""
    one, other = int((first & ~second).sum()), int((second & ~first).sum())
    if one + other < 25:
        return float(stats.binomtest(one, one + other).pvalue)
    return float(stats.chi2.sf((abs(one - other) - 1) ** 2 / (one + other), 1))


def test_pairs_of_methods(out: Path) -> None:
    (comparison,) = group_by_dataset(read_results([out]).runs)
    square, pairs = method_tests("class_incremental", comparison.orders["class_incremental"])
    assert len(pairs.rows) == 2 * 10
    found = {(row[0].text, row[1].text): row for row in pairs.rows}
    names = {"siesta": "02-after", "remind": "02-after", "offline": "00-after"}
    for first, second in (("siesta", "remind"), ("siesta", "offline"), ("remind", "offline")):
        for k in (1, 5):
            one, other = (correct(out, f"{some}-class_incremental-0", names[some], k) for some in (first, second))
            row = found[f"{first}, {second}", f"top-{k}"]
            assert row[2].text == str((one & ~other).sum())
            assert row[3].text == str((other & ~one).sum())
            assert row[4].text == format_p_value(mcnemar(one, other))
    rows = {row[0].text: row for row in square.rows}
    place = {name: number for number, name in enumerate(square.columns)}
    assert rows["siesta"][place["remind"]].text == found["siesta, remind", "top-1"][5].text
    assert rows["remind"][place["siesta"]].text == found["siesta, remind", "top-5"][5].text
    assert rows["siesta"][place["siesta"]].text == ""
    assert "Cochran's Q over all: top-1: Q = " in square.note
    assert "(seed 0)" in square.note
    for row in pairs.rows:
        assert row[5].best == (row[5].text.startswith("<") or float(row[5].text) < SIGNIFICANCE_LEVEL)


def test_a_single_method_is_not_tested(tmp_path: Path) -> None:
    write_run(tmp_path / "toy")
    (comparison,) = group_by_dataset(read_results([tmp_path]).runs)
    assert method_tests("class_incremental", comparison.groups()) == []
    assert order_tests(comparison) is None


def test_methods_with_different_seeds_are_listed_with_them(tmp_path: Path) -> None:
    write_run(tmp_path / "toy", seed=3)
    write_run(tmp_path / "toy", "ncm", seed=1)
    (comparison,) = group_by_dataset(read_results([tmp_path]).runs)
    assert "(seeds: siesta 3, ncm 1)" in method_tests("class_incremental", comparison.groups())[0].note


def test_orders(out: Path) -> None:
    (comparison,) = group_by_dataset(read_results([out]).runs)
    table = order_tests(comparison)
    assert table is not None
    assert len(table.rows) == 2 * (4 * 2 + 1)  # four methods with two seeds, offline with one
    (row,) = [row for row in table.rows if (row[0].text, row[2].text, row[3].text) == ("remind", "1", "top-1")]
    one, other = (correct(out, f"remind-{order}-1", "02-after", 1) for order in ("class_incremental", "iid"))
    assert row[4].text == f"{100 * one.mean():.2f}"
    assert row[6].text == format_p_value(mcnemar(one, other))
    ps = sorted(
        mcnemar(correct(out, f"{run}-class_incremental-{seed}", name, 1), correct(out, f"{run}-iid-{seed}", name, 1))
        for run, seed, name in [
            *((run, seed, "02-after") for run in ("siesta", "siesta_awake", "remind", "slda") for seed in (0, 1)),
            ("offline", 0, "00-after"),
        ]
    )
    smallest = min(float(row[7].text) for row in table.rows if row[3].text == "top-1")
    assert smallest == pytest.approx(min(1.0, 9 * ps[0]), abs=6e-4)


def test_orders_with_other_test_samples_are_left_out(tmp_path: Path) -> None:
    write_run(tmp_path / "toy")
    write_run(tmp_path / "toy", order="iid", classes=4)
    (comparison,) = group_by_dataset(read_results([tmp_path]).runs)
    assert order_tests(comparison) is None
