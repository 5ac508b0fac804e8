"""Tables against values computed from the files."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import pytest

from siesta.experiment.report.document import ReportTable
from siesta.experiment.report.groups import DatasetComparison, group_by_dataset
from siesta.experiment.report.tables import (
    bytes_table,
    costs_table,
    gains_table,
    main_table,
    old_new_table,
    steps_table,
)
from siesta.experiment.results import read_results
from tests.experiment.written_runs import write_run


@pytest.fixture
def comparison(out: Path) -> DatasetComparison:
    (comparison,) = group_by_dataset(read_results([out]).runs)
    return comparison


def stored(out: Path, run: str, name: str) -> dict[str, Any]:
    with np.load(out / "runs" / run / "predictions" / f"{name}.npz") as arrays:
        return {key: arrays[key] for key in arrays.files}


def right(arrays: dict[str, Any], k: int, among: Any = None) -> float:
    """Accuracy by hand, over the samples of some classes."""
    pairs = zip(arrays["truth"].tolist(), arrays["top"].tolist(), strict=True)
    hits = [truth in top[:k] for truth, top in pairs if among is None or truth in among]
    return 100 * sum(hits) / len(hits)


def cell(table: ReportTable, row: str, column: str) -> str:
    (found,) = [line for line in table.rows if line[0].text == row]
    return found[list(table.columns).index(column)].text


def pm(values: list[float], sign: str = "") -> str:
    return f"{mean(values):{sign}.2f}" + (f"±{stdev(values):.2f}" if len(values) > 1 else "")


def test_the_papers_columns_against_the_files(out: Path, comparison: DatasetComparison) -> None:
    table = main_table("class_incremental", comparison.orders["class_incremental"])
    for k in (1, 5):
        runs = [
            [right(stored(out, f"siesta-class_incremental-{seed}", f"{step:02d}-after"), k) for step in range(3)]
            for seed in (0, 1)
        ]
        assert cell(table, "siesta", f"mu top-{k}") == pm([mean(run) for run in runs])
        assert cell(table, "siesta", f"alpha top-{k}") == pm([run[-1] for run in runs])
    assert cell(table, "siesta", "P") == "4.00 M"
    assert cell(table, "siesta", "M") == "16.0 MB"
    assert cell(table, "siesta", "U") == "300"
    rates = [(6e9 + 8e9) / (1.5 + seed + 1.0) / 1e9 for seed in (0, 1)]
    assert cell(table, "siesta", "GFLOPS") == f"{mean(rates):.1f}"
    assert cell(table, "siesta", "seeds") == "2"
    assert (cell(table, "offline", "mu top-1"), cell(table, "offline", "seeds")) == ("-", "1")
    assert table.title == "class_incremental: 6 classes, 60 test images"


def test_the_best_continual_learner_is_marked(comparison: DatasetComparison) -> None:
    table = main_table("iid", comparison.orders["iid"])
    place = list(table.columns).index("alpha top-1")
    assert [row[0].text for row in table.rows if row[place].best] == ["siesta"]


def test_the_papers_values_are_shown_below_ours(tmp_path: Path) -> None:
    for order in ("class_incremental", "iid"):
        write_run(tmp_path / "toy", "remind", order)
        write_run(tmp_path / "toy", "slda", order)
    (comparison,) = group_by_dataset(read_results([tmp_path]).runs)
    table = main_table("class_incremental", comparison.orders["class_incremental"])
    remind, slda = table.rows
    papers = dict(zip(table.columns, [some.paper for some in remind], strict=True))
    assert papers == {
        "method": "paper",
        "P": "5.48 M",
        "mu top-1": None,
        "alpha top-1": None,
        "mu top-5": "74.00±1.44",
        "alpha top-5": "70.76±1.94",
        "M": "31.4 MB",
        "U": "42.0 k",
        "GFLOPS": None,
        "seeds": None,
    }
    assert {some.paper for some in slda} == {None}
    assert "mean and std of 6 runs" in table.note
    assert "GFLOPS" not in table.note
    iid = main_table("iid", comparison.orders["iid"])
    assert {some.paper for row in iid.rows for some in row} == {None}


def test_steps(out: Path, comparison: DatasetComparison) -> None:
    table = steps_table("class_incremental", comparison.orders["class_incremental"], 1)
    assert list(table.columns) == ["method", "2 classes", "4 classes", "6 classes"]
    values = [right(stored(out, f"slda-class_incremental-{seed}", "01-after"), 1) for seed in (0, 1)]
    assert cell(table, "slda", "4 classes") == pm(values)
    assert cell(table, "offline", "4 classes") == "-"
    offline = right(stored(out, "offline-class_incremental-0", "00-after"), 1)
    assert cell(table, "offline", "6 classes") == f"{offline:.2f}"
    assert steps_table("iid", comparison.orders["iid"], 5).columns[1:] == ["step 1", "step 2", "step 3"]


def test_gains_are_over_all_sleeps(out: Path, comparison: DatasetComparison) -> None:
    table = gains_table(comparison)
    assert table is not None
    assert [row[0].text for row in table.rows] == ["siesta, class_incremental", "siesta, iid"]
    gains = [
        right(stored(out, f"siesta-iid-{seed}", f"{step:02d}-after"), 1)
        - right(stored(out, f"siesta-iid-{seed}", f"{step:02d}-before"), 1)
        for seed in (0, 1)
        for step in range(3)
    ]
    assert cell(table, "siesta, iid", "gain top-1") == pm(gains, "+")
    last = [right(stored(out, f"siesta-iid-{seed}", "02-before"), 1) for seed in (0, 1)]
    assert cell(table, "siesta, iid", "last before top-1") == pm(last)


def test_old_new_and_forgetting(out: Path, comparison: DatasetComparison) -> None:
    table = old_new_table(comparison)
    assert table is not None
    row = "remind, class_incremental"
    ends = [stored(out, f"remind-class_incremental-{seed}", "02-after") for seed in (0, 1)]
    assert cell(table, row, "old top-1") == pm([right(end, 1, {0, 1, 2, 3}) for end in ends])
    assert cell(table, row, "new top-1") == pm([right(end, 1, {4, 5}) for end in ends])
    lost = []
    for seed in (0, 1):
        past = [stored(out, f"remind-class_incremental-{seed}", f"{step:02d}-after") for step in range(3)]
        of_class = []
        for label in range(4):
            seen = [right(step, 1, {label}) for step in past if label in step["truth"]]
            of_class.append(max(seen[:-1]) - seen[-1])
        lost.append(mean(of_class))
    assert cell(table, row, "forgetting top-1") == pm(lost)
    assert cell(table, "remind, iid", "new top-1") == "-"
    assert not any("offline" in line[0].text for line in table.rows)


def test_costs(comparison: DatasetComparison) -> None:
    table = costs_table(comparison)
    assert cell(table, "siesta, iid", "wake, time") == "2 s ± 0.7 s"
    assert cell(table, "siesta, iid", "sleep, FLOPs") == "8.00 G"
    table = bytes_table(comparison)
    assert list(table.columns) == ["method, order", "M", "codes", "network"]  # nobody stores images
    assert cell(table, "slda, iid", "codes") == "3.00 kB"


def test_methods_without_sleep_have_no_table_of_gains(tmp_path: Path) -> None:
    write_run(tmp_path / "toy", "offline")
    (comparison,) = group_by_dataset(read_results([tmp_path]).runs)
    assert gains_table(comparison) is None
    assert old_new_table(comparison) is None


def test_every_row_has_a_cell_for_each_column(comparison: DatasetComparison) -> None:
    tables = [costs_table(comparison), bytes_table(comparison), gains_table(comparison), old_new_table(comparison)]
    for order, groups in comparison.orders.items():
        tables += [main_table(order, groups), steps_table(order, groups, 1)]
    for table in tables:
        assert table is not None
        widths = [len(table.columns), *(len(row) for row in table.rows)]
        assert all(one == other for one, other in pairwise(widths))
        assert all(re.search(r"\S", some.text) for row in table.rows for some in row)
