"""`siesta reproduce`, as people type it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from siesta.cli.app import app
from siesta.errors import SiestaError
from tests.experiment import toys

SMALL = [
    "data.image_size=48",
    "orders.class_incremental.classes_per_step=1",
    "methods.er.rehearsals=1",
    "methods.offline_whole.epochs=1",
]


def reproduce(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    toys.use_torch_engine(monkeypatch)
    return tmp_path


def test_the_list_has_requirements_and_published_values(here: Path) -> None:
    toys.cub200(here / "data" / "cub200")
    done = reproduce("--list")
    assert done.exit_code == 0
    for words in (
        "no_aug: tab:no_aug, subfig:learning_curve",
        "imagenet, not found at data/imagenet",
        "cub200, found at data/cub200",
        "siesta 86.51±0.18 / 83.52±0.28",
        "siesta in every_50 (gain, points: 2.29±0.86)",
        "remind (hours: 8.10)",
        "also: the order of classes imagenet_class_order.txt, not found",
        "also: images of ImageNet for the codec",
    ):
        assert words in done.stdout, words
    told = {some["experiment"]: some for some in json.loads(reproduce("--list", "--json", "--data", here).stdout)}
    assert (told["ssl"]["found"], told["ssl"]["looked"]) == (None, str(here / "imagenet"))
    (first, *_) = told["cub200"]["published"]
    assert (first["method"], first["row"]["alpha"], told["cub200"]["found"]) == ("siesta", 83.52, None)


def test_results_are_printed_beside_the_published_ones(here: Path) -> None:
    sizes = [word for change in SMALL for word in ("--set", change)]
    birds = str(toys.cub200(here / "birds"))
    command = ["cub200", "--data", birds, "--weights", "random", "--methods", "er,offline_whole", "--seeds", "0,1"]
    command += sizes
    planned = reproduce(*command, "--dry-run")
    assert (planned.exit_code, planned.stdout) == (0, "")
    assert "er-class_incremental-1" in planned.stderr and not (here / "runs").exists()
    done = reproduce(*command)
    assert done.exit_code == 0
    assert "Not the published experiment: data.image_size=48" in done.stderr and "random weights" in done.stderr
    for words in (
        "ours",
        "paper",
        "74.62±1.41",
        "902.26",
        "tab:cub: ER",
        "2 seeds",
        "alpha, top-5 %",
        "P, millions",
        "M, MB",
        "U, thousands",
        "Not the published",
    ):
        assert words in done.stdout, words
    assert "GFLOPS" not in done.stdout  # nothing is published here
    lines = json.loads(reproduce(*command, "--json").stdout)
    assert [(line["method"], line["runs"], line["published"]["updates"]) for line in lines] == [
        ("er", 2, 41.96),
        ("offline_whole", 2, 587.41),
    ]
    assert "random weights" in lines[0]["changed"]
    assert lines[0]["ours"]["updates"]["mean"] == (2 * 6 - 1) / 1000  # thousands; the first finds nothing to rehearse


def test_invalid_input_is_reported_in_one_sentence(here: Path) -> None:
    for arguments, words in (
        ([], "name an experiment of the paper"),
        (["--list", "--data", "nowhere"], "no folder nowhere"),
        (["mnist"], "no experiment 'mnist'"),
        (["no_aug"], "imagenet is not at data/imagenet: give its folder with --data"),
        (["no_aug", "--data", "nowhere", "--weights", "random"], r"train/<wnid>.*below nowhere"),
        (["cub200", "--data", "nowhere"], "no weights at weights/swav_mobilenet_v3_large.pth"),
        (["cub200", "--data", "nowhere", "--weights", "random", "--seeds", "x"], "seeds are whole numbers"),
    ):
        with pytest.raises(SiestaError, match=words) as caught:
            reproduce(*arguments)
        assert caught.value.exit_code == 3 and "\n" not in str(caught.value)
