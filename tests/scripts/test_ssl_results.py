"""The script that compares pre-training methods, on a tiny network and data set."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import ssl_results
from siesta.pretrain import PRETRAINERS
from siesta.pretrain.options import check_method_options
from tests.pretrain.toys import TINY


@pytest.mark.parametrize("name", ssl_results.REDUCED_SETTINGS)
def test_reduced_settings_are_valid(name: str) -> None:
    check_method_options(name, PRETRAINERS[name], ssl_results.REDUCED_SETTINGS[name].get("options", {}))


@pytest.fixture
def options(textures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command line with which every part takes seconds."""
    monkeypatch.setattr(ssl_results, "SEEDS", (0, 1))
    size = ["--dataset", "image_folder", "--backbone", TINY, "--image-size", "32", "--readout-epochs", "2"]
    short = ["--seconds", "0.5", "--base-classes", "2", "--step-classes", "1", "--base-epochs", "2", "--updates", "64"]
    places = ["--work", str(tmp_path / "work"), "--results", str(tmp_path / "results")]
    return ["ssl_results", str(textures), *size, *short, *places, "--methods", "swav,supervised"]


def test_every_method_is_measured_once(options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [*options, "--parts", "pretraining,readout"])
    ssl_results.main()
    found = _rows(tmp_path / "results")
    assert [row["method"] for row in found["pretraining"]] == ["swav", "supervised", "untrained"]
    starts = [(row["method"], row["config"]["seed"]) for row in found["readout"]]
    assert starts == [(name, seed) for name in ("swav", "supervised", "untrained", "random") for seed in (0, 1)]
    ssl_results.main()
    assert _rows(tmp_path / "results") == found


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["--methods", "swav,nix"], "there is no method 'nix': choose some of swav, "),
        (["--parts", "nix"], "there is no part 'nix': choose some of pretraining, readout, chain"),
        (["--parts", "chain"], "run --parts readout, or give --starts"),
        (["--dataset", "nix"], "nix"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_measured(
    wrong: list[str], words: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [*options, *wrong])
    with pytest.raises(SystemExit, match=words):
        ssl_results.main()
    assert not _rows(tmp_path / "results")


def test_a_learning_rate_can_be_given_for_all_methods(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate = ["--methods", "barlow_twins", "--pretraining-rate", "0.3", "--parts", "pretraining"]
    monkeypatch.setattr(sys, "argv", [*options, *rate])
    ssl_results.main()
    (row,) = _rows(tmp_path / "results")["pretraining"]
    assert row["config"]["rate"] == 0.3 != ssl_results.REDUCED_SETTINGS["barlow_twins"]["lr"]


@pytest.mark.slow
def test_the_chain_starts_from_the_best_method_and_from_an_untrained_network(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", options)
    ssl_results.main()
    found = _rows(tmp_path / "results")["chain"]
    steps = [(row["start"], row["classes"]) for row in found]
    assert steps == [(name, classes) for name in ("swav", "untrained") for classes in (2, 3, 4)]
    ssl_results.main()
    assert _rows(tmp_path / "results")["chain"] == found


def _rows(results: Path) -> dict[str, list[dict[str, Any]]]:
    files = sorted(results.glob("*.jsonl"))
    return {file.stem: [json.loads(line) for line in file.read_text("utf-8").splitlines()] for file in files}
