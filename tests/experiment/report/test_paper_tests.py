"""The paper's tests on written runs, against scipy and the formulas written out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from siesta.experiment.report.formatting import format_p_value
from siesta.experiment.report.groups import DatasetComparison, group_by_dataset
from siesta.experiment.report.paper_tests import cochran_table, pairs_of_paper, pairs_table
from siesta.experiment.results import read_results
from tests.experiment.written_runs import write_run

CLASSES, EACH = 6, 50


def comparison_of(out: Path) -> DatasetComparison:
    (comparison,) = group_by_dataset(read_results([out]).runs)
    return comparison


def correct(out: Path, run: str, k: int) -> Any:
    file = sorted((out / "runs" / run / "predictions").glob("*-after.npz"))[-1]
    with np.load(file) as arrays:
        return (arrays["top"][:, :k] == arrays["truth"][:, None]).any(axis=1)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SIESTA with two seeds and a variant with one, itself in iid order with one, offline with one, and REMIND."""
    out = tmp_path_factory.mktemp("full") / "toy"
    for seed in (0, 1):
        write_run(out, seed=seed, each=EACH)
    write_run(out, "siesta_paper", each=EACH)
    write_run(out, order="iid", each=EACH)
    write_run(out, "offline", right=0.62, each=EACH)
    write_run(out, "remind", right=0.3, each=EACH)
    write_run(out, "siesta_er", right=0.3, each=EACH)
    return out


def test_pairs_are_siesta_against_offline_and_against_itself_in_iid_order(full: Path) -> None:
    pairs = [(pair.label, pair.against, pair.seeds) for pair in pairs_of_paper(comparison_of(full))]
    assert pairs == [
        ("siesta", "offline", "0"),
        ("siesta", "offline", "1, 0"),  # of a seed that was not measured offline
        ("siesta", "iid", "0"),
        ("siesta", "iid", "1, 0"),
        ("siesta_paper", "offline", "0"),
    ]


def test_rows_show_p_uncorrected_and_corrected_with_the_interval(full: Path) -> None:
    table = pairs_table(comparison_of(full))
    assert table is not None
    assert len(table.rows) == 2 * 5
    for k in (1, 5):
        rows = [[cell.text for cell in row] for row in table.rows if row[3].text == f"top-{k}"]
        names = [("siesta", 0), ("siesta", 1), ("siesta", 0), ("siesta", 1), ("siesta_paper", 0)]
        others = ["offline-class_incremental-0"] * 2 + ["siesta-iid-0"] * 2 + ["offline-class_incremental-0"]
        expected = []
        for (method, seed), other in zip(names, others, strict=True):
            first = correct(full, f"{method}-class_incremental-{seed}", k)
            second = correct(full, other, k)
            b, c = int((first & ~second).sum()), int((second & ~first).sum())
            chi = (abs(b - c) - 1) ** 2 / (b + c) if b != c else 0.0
            p = float(stats.chi2.sf(chi, 1)) if b + c >= 25 else float(stats.binomtest(b, b + c).pvalue)
            n = len(first) + 2
            centre = (b - c) / n
            half = stats.norm.ppf(0.975) * np.sqrt(((b + c + 2) / n - centre**2) / n)
            expected.append((100 * (b - c) / len(first), 100 * (centre - half), 100 * (centre + half), p))
        for row, (points, low, high, p) in zip(rows, expected, strict=True):
            assert row[4:7] == [f"{points:+.2f}", f"{low:+.2f} to {high:+.2f}", format_p_value(p)]
        by_rank = sorted(range(5), key=lambda index: expected[index][3])
        step_down = np.maximum.accumulate([min(1, (5 - rank) * expected[i][3]) for rank, i in enumerate(by_rank)])
        assert [rows[i][7] for i in by_rank] == [format_p_value(p) for p in step_down]
        assert {row[8] for row in rows} <= {"equivalent within one point", "different", "undecided"}


def test_cochran_is_over_both_orders_and_offline(full: Path) -> None:
    table = cochran_table(comparison_of(full))
    assert table is not None
    assert [[cell.text for cell in row[:4]] for row in table.rows] == [
        ["siesta", "offline", "0", "top-1"],
        ["siesta", "offline", "0", "top-5"],
        ["siesta", "offline", "1, 0, 0", "top-1"],
        ["siesta", "offline", "1, 0, 0", "top-5"],
    ]
    runs = ("siesta-class_incremental-0", "siesta-iid-0", "offline-class_incremental-0")
    cases = np.stack([correct(full, run, 1) for run in runs], axis=1).astype(int)
    columns, rows, total = cases.sum(axis=0), cases.sum(axis=1), cases.sum()
    q = 2 * (3 * (columns**2).sum() - total**2) / (3 * total - (rows**2).sum())
    assert [cell.text for cell in table.rows[0][4:]] == [f"{q:.1f}", format_p_value(float(stats.chi2.sf(q, 2)))]


def test_without_offline_or_iid_runs_there_are_no_tables(tmp_path: Path) -> None:
    write_run(tmp_path / "toy")
    write_run(tmp_path / "toy", "remind")
    comparison = comparison_of(tmp_path)
    assert pairs_table(comparison) is None and cochran_table(comparison) is None


def test_runs_on_other_test_samples_are_no_pair(tmp_path: Path) -> None:
    write_run(tmp_path / "toy")
    write_run(tmp_path / "toy", "offline", classes=4)
    assert pairs_of_paper(comparison_of(tmp_path)) == []
