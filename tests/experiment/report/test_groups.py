"""Runs are grouped by data, order and method, with stable styles."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, stdev

import pytest

from siesta.errors import BadInput
from siesta.experiment.report.groups import group_by_dataset
from siesta.experiment.results import read_results
from siesta.methods import METHODS
from tests.experiment.written_runs import write_run


def test_seeds_of_a_method_on_an_order_form_a_group(out: Path) -> None:
    (comparison,) = group_by_dataset(read_results([out]).runs)
    assert list(comparison.orders) == ["class_incremental", "iid"]
    groups = comparison.orders["iid"]
    assert [group.label for group in groups] == ["siesta", "siesta_awake", "remind", "slda", "offline"]
    assert [group.series.index for group in groups] == [list(METHODS).index(group.label) for group in groups]
    assert [len(group.runs) for group in groups] == [2, 2, 2, 2, 1]
    assert [group.sleeps for group in groups] == [True, False, False, False, False]
    assert [group.offline for group in groups] == [False, False, False, False, True]
    assert groups[0].first.last["seed"] == 0
    assert len(comparison.groups()) == 10


def test_means_and_deviations_are_over_seeds(out: Path) -> None:
    group = group_by_dataset(read_results([out]).runs)[0].orders["iid"][0]
    values = [run.last["seconds"]["wake"] for run in group.runs]
    found = group.over_seeds(lambda run: run.last["seconds"]["wake"])
    assert found is not None
    assert found.mean == mean(values)
    assert found.std == pytest.approx(stdev(values))
    assert group.over_seeds(lambda run: run.metrics[1].new[-1]) is None  # of some order all classes are old
    curve = group.curve(lambda run: run.metrics[1].after)
    assert [some.mean for some in curve if some] == pytest.approx(
        [mean(pair) for pair in zip(*(run.metrics[1].after for run in group.runs), strict=True)]
    )


def test_each_data_set_is_a_comparison_of_its_own(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", data={"dataset": "cub200", "image_size": 32})
    assert [some.data for some in group_by_dataset(read_results([tmp_path]).runs)] == [
        "cub200, 224 px",
        "cub200, 32 px",
    ]


def test_a_method_has_the_same_style_in_every_comparison(tmp_path: Path) -> None:
    for folder, methods in (("a", ("siesta", "slda", "ncm")), ("b", ("ncm", "half", "siesta"))):
        for method in methods:
            write_run(tmp_path / folder, method, kind="siesta" if method == "half" else method)
    a, b = (
        {
            group.label: group.series.index
            for group in group_by_dataset(read_results([tmp_path / folder]).runs)[0].groups()
        }
        for folder in "ab"
    )
    assert (a["siesta"], a["ncm"]) == (b["siesta"], b["ncm"])
    assert len(set(b.values())) == 3


def test_a_method_from_two_folders_is_named_with_each(tmp_path: Path) -> None:
    write_run(tmp_path / "plain")
    write_run(tmp_path / "centred")
    write_run(tmp_path / "centred", "ncm")
    (comparison,) = group_by_dataset(read_results([tmp_path]).runs)
    assert [group.label for group in comparison.groups()] == ["siesta (centred)", "siesta (plain)", "ncm"]


def test_seeds_with_different_settings_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "toy")
    write_run(tmp_path / "toy", seed=1, settings={"updates": 7})
    with pytest.raises(BadInput, match="two seeds with different settings"):
        group_by_dataset(read_results([tmp_path]).runs)


def test_variants_come_after_their_method(tmp_path: Path) -> None:
    for method in ("half", "siesta", "unknown"):
        write_run(tmp_path / "toy", method, kind="siesta")
    write_run(tmp_path / "toy", "ncm")
    (comparison,) = group_by_dataset(read_results([tmp_path]).runs)
    assert [group.label for group in comparison.groups()] == ["siesta", "half", "unknown", "ncm"]
