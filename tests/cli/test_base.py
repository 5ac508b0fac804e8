"""`siesta base`: what it prints and how it ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from siesta.cli.app import app
from siesta.errors import BadInput

OPTIONS = ["--image-size", "32", "--epochs", "2", "--batch-size", "16", "--memory", "1MB"]


@pytest.fixture
def photos(tmp_path: Path, make_pictures: Callable[..., Path]) -> Path:
    return make_pictures(tmp_path / "photos", ["robin", "wren", "[red]"], each=24)


def base(path: Path, data: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["base", str(path), "--data", str(data), *OPTIONS, *options])


def answer(done: Result) -> Any:
    return json.loads(done.stdout)


def test_from_pictures_to_a_trained_learner_and_once_more(photos: Path, tmp_path: Path) -> None:
    first = base(tmp_path / "x.siesta", photos, "--space", "linear_centred", "--seed", "3", "--json")
    assert first.exit_code == 0
    result = answer(first)
    assert result["status"] == "trained" and result["learned"] == result["stored"] == 72 and result["known"] == 0
    training = result["training"]
    assert training["updates"] == 144 and training["classes"] == 3 and training["settings"]["seed"] == 3
    assert training["settings"]["schedule"] == "steps" and training["settings"]["augment"] == "mixup_cutmix"
    info = answer(CliRunner().invoke(app, ["info", str(tmp_path / "x.siesta"), "--json"]))
    assert info["backbone"]["space"] == "linear_centred" and len(info["sleeps"]) == 1
    for phase in ("looking", "storing", "training"):
        assert phase in first.stderr
    second = base(tmp_path / "x.siesta", photos, "--space", "linear_centred", "--seed", "3")
    assert second.exit_code == 0 and "was done already; nothing was changed" in second.stdout
    assert answer(CliRunner().invoke(app, ["info", str(tmp_path / "x.siesta"), "--json"])) == info


def test_words_for_people_and_pictures_that_cannot_be_read(photos: Path, tmp_path: Path) -> None:
    (photos / "[red]" / "notes.txt").write_text("no picture")
    done = base(tmp_path / "x.siesta", photos)
    assert done.exit_code == 6
    assert "Stored 72 base pictures, 0 were stored already. Trained: 144 updates" in done.stdout
    assert re.search(r"; on \d+ samples it never rehearses [\d.]+ % -> [\d.]+ %\. Teach it more", done.stdout)
    assert "[red]/notes.txt is not a readable picture" in done.stderr


def test_without_labels_it_ends_with_the_codec(tmp_path: Path, photos: Path) -> None:
    flat = tmp_path / "flat"
    flat.mkdir()
    for number, file in enumerate(sorted(photos.rglob("*.png"))):
        Image.open(file).save(flat / f"{number}.png")
    done = base(tmp_path / "x.siesta", flat)
    assert done.exit_code == 0
    assert "its codec is fitted" in done.stdout and "have no labels" in done.stdout
    assert "was done already" in base(tmp_path / "x.siesta", flat).stdout


def test_a_memory_that_is_too_small_is_mentioned(photos: Path, tmp_path: Path) -> None:
    done = base(tmp_path / "x.siesta", photos, "--memory", "2KB")
    assert done.exit_code == 0
    assert "the memory holds 31 of them: give more --memory" in done.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--epochs", "0"], "at least one epoch"),
        (["--lr", "-1"], "above zero"),
        (["--space", "outer"], "no space 'outer'"),
        (["--data", "nowhere"], "not a folder"),
        (["--weights", "nowhere"], "no file of weights"),
    ],
)
def test_it_refuses_and_leaves_nothing(photos: Path, tmp_path: Path, options: list[str], words: str) -> None:
    done = base(tmp_path / "x.siesta", photos, *options)
    assert isinstance(done.exception, BadInput) and words in str(done.exception)
    assert [entry.name for entry in tmp_path.iterdir()] == ["photos"]
