"""The script that measures networks, on a tiny network and data set, and the table of its rows."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scripts import measurement_tables, network_results
from scripts.network_costs import measure_costs
from siesta.backbones import BACKBONES
from tests.pretrain.toys import TINY, TINY_SPEC

COSTS = {"predict_ms": 1.5, "learn_ms": 2.5, "bytes_a_sample": 2048, "peak_mb": 99.0}


@pytest.fixture
def arguments(textures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command line that runs the protocol in seconds; costs are not measured."""
    monkeypatch.setitem(BACKBONES, TINY, replace(TINY_SPEC, image_size=32))
    monkeypatch.setattr(network_results, "NETWORKS", (TINY,))
    monkeypatch.setattr(network_results, "measure_costs", lambda _path, **_options: COSTS)
    changes = ["orders.class_incremental.classes_per_step=1", "methods.siesta.updates=8", "network.cut=2"]
    places = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results" / "networks.jsonl")]
    weights = ["--mobilenet-weights", "random", "--base", str(next((textures / "train").iterdir())), "--networks", TINY]
    return [str(textures), *weights, *places, *(word for change in changes for word in ("--set", change))]


def measure(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The rows that the script leaves."""
    monkeypatch.setattr(sys, "argv", ["network_results", *arguments])
    network_results.main()
    lines = (tmp_path / "results" / "networks.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_each_part_has_a_row_and_a_finished_run_is_read(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accuracy, costs = measure(arguments, tmp_path, monkeypatch)
    (run,) = (tmp_path / "runs" / TINY / "runs").iterdir()
    last = json.loads((run / "rows.jsonl").read_text("utf-8").splitlines()[-1])
    assert (accuracy["bench"], accuracy["network"]) == ("network_accuracy", TINY)
    assert accuracy["top1"] == round(last["top1"], 2) and accuracy["commit"] == last["commit"]
    assert accuracy["config"]["classes"] == 4 and accuracy["updates"] == 32
    assert accuracy["config"]["data"]["image_size"] == costs["config"]["image_size"] == 32
    assert costs["bytes_a_sample"] == 2048 and costs["machine"]["cores"]
    again = measure([*arguments, "--parts", "accuracy"], tmp_path, monkeypatch)
    assert again == [accuracy, costs], "the run is not repeated, and the other row stays"


def test_the_table_has_a_line_for_each_network_and_a_dash_for_what_is_missing(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurement_tables, "ROOT", tmp_path)
    assert measurement_tables.networks().startswith("No network is measured yet")
    measure([*arguments, "--parts", "costs"], tmp_path, monkeypatch)
    assert f"| {TINY} | 32 px | 1.5 | 2.5 | 2,048 | 99 | - | - |" in measurement_tables.networks()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["--networks", "vgg"], "there is no vgg to measure: choose some of tiny"),
        (["--parts", "size"], "there is no size to measure: choose some of costs, accuracy"),
        (["--method", "nix"], "nix"),
        (["--set", "data.nix=1"], "nix"),
    ],
)
def test_a_wrong_option_is_refused_in_a_sentence(
    wrong: list[str], words: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match=words):
        measure([*arguments, *wrong], tmp_path, monkeypatch)


def test_a_network_without_published_weights_needs_a_file(
    arguments: list[str], textures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match="tiny has no published weights: give --mobilenet-weights and --base"):
        measure([str(textures), "--networks", TINY], tmp_path, monkeypatch)


def test_costs_are_those_of_a_process_with_the_learner(tmp_path: Path) -> None:
    found = measure_costs(tmp_path / "x.siesta", image_size=32)
    assert found["bytes_a_sample"] == 32, "2 x 2 positions of 8 bytes"
    assert 0 < found["predict_ms"] < 1000 and 0 < found["learn_ms"] < 1000
    assert 50 < found["peak_mb"] < 2000
