"""The script that measures pre-training, whole, on a toy; and the table that is made of its rows."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import ssl, ssl_results
from siesta.pretrain import PRETRAINERS
from siesta.pretrain.options import checked_options
from tests.pretrain.toys import TINY


@pytest.mark.parametrize("name", ssl_results.AFFORDED)
def test_what_is_afforded_is_known(name: str) -> None:
    checked_options(name, PRETRAINERS[name], ssl_results.AFFORDED[name].get("options", {}))


@pytest.fixture
def options(textures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command line that has every part done in seconds."""
    monkeypatch.setattr(ssl_results, "SEEDS", (0, 1))
    size = ["--dataset", "image_folder", "--backbone", TINY, "--image-size", "32", "--readout-epochs", "2"]
    short = ["--seconds", "0.5", "--base-classes", "2", "--step-classes", "1", "--base-epochs", "2", "--updates", "64"]
    places = ["--work", str(tmp_path / "work"), "--results", str(tmp_path / "results")]
    return ["ssl_results", str(textures), *size, *short, *places, "--methods", "swav,supervised"]


def test_every_start_is_measured_once(options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_mistake_is_a_sentence_before_anything_is_measured(
    wrong: list[str], words: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [*options, *wrong])
    with pytest.raises(SystemExit, match=words):
        ssl_results.main()
    assert not _rows(tmp_path / "results")


def test_a_rate_takes_the_place_of_a_method_s_own(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate = ["--methods", "barlow_twins", "--pretraining-rate", "0.3", "--parts", "pretraining"]
    monkeypatch.setattr(sys, "argv", [*options, *rate])
    ssl_results.main()
    (row,) = _rows(tmp_path / "results")["pretraining"]
    assert row["config"]["rate"] == 0.3 != ssl_results.AFFORDED["barlow_twins"]["rate"]


@pytest.mark.slow
def test_the_chain_goes_from_the_best_and_from_nothing(
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


def test_what_is_no_better_than_untrained_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"seconds": 1.0, "threads": 1, "backbone": TINY, "image_size": 32}
    seen = {"pictures": 10, "epochs": 1.0, "loss_first": 2.0, "loss_last": 1.0, "knn_untrained": 1.0, "knn": 2.0}
    trained = [
        {"method": name, "config": config, "warning": None, "date": "2026-01-01", **seen} for name in ("swav", "mira")
    ]
    tops = {"untrained": (1.0, 1.2), "swav": (1.3, 1.5), "mira": (1.1, 3.0)}
    read = [
        {"method": name, "top1": top, "config": {"seed": seed, "epochs": 6, "rate": 0.02}}
        for name, values in tops.items()
        for seed, top in enumerate(values)
    ]
    monkeypatch.setattr(ssl, "_measured", {"pretraining": trained, "readout": read}.__getitem__)
    lines = ssl.pretraining().splitlines()
    last = {line.split(" | ")[0].strip("| "): line.split(" | ")[-1].strip("| ") for line in lines[2:5]}
    assert last == {"swav": "yes", "mira": "**no**", "untrained": ""}
