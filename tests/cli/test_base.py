"""`siesta base`: what it prints, how it ends, and that it continues after Ctrl-C."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from tests.cli.running import Result, assert_refused, interrupt, result_of, run
from tests.small import SMALL, register_small

OPTIONS = ["--backbone", SMALL, "--image-size", "32", "--epochs", "2", "--batch-size", "16", "--memory", "1MB"]


@pytest.fixture(autouse=True)
def _small_network(monkeypatch: pytest.MonkeyPatch) -> None:
    register_small(monkeypatch)


@pytest.fixture
def photos(tmp_path: Path, make_pictures: Callable[..., Path]) -> Path:
    return make_pictures(tmp_path / "photos", ["robin", "wren", "[red]"], each=24)


def base(path: Path, data: Path, *options: str) -> Result:
    return run("base", path, "--data", data, *OPTIONS, *options)


def test_base_images_give_a_trained_learner_once(photos: Path, tmp_path: Path) -> None:
    first = base(tmp_path / "x.siesta", photos, "--space", "linear_centred", "--seed", "3", "--json")
    assert first.returncode == 0
    result = json.loads(first.stdout)
    assert result["status"] == "trained" and result["learned"] == result["stored"] == 72 and result["known"] == 0
    training = result["training"]
    assert training["updates"] == 144 and training["classes"] == 3 and training["settings"]["seed"] == 3
    assert training["settings"]["schedule"] == "steps" and training["settings"]["augment"] == "mixup_cutmix"
    info = result_of("info", tmp_path / "x.siesta")
    assert info["backbone"]["space"] == "linear_centred" and len(info["sleeps"]) == 1
    for phase in ("fitting the codec", "storing", "training"):
        assert phase in first.stderr
    second = base(tmp_path / "x.siesta", photos, "--space", "linear_centred", "--seed", "3")
    assert second.returncode == 0 and "is already complete; nothing was changed" in second.stdout
    assert result_of("info", tmp_path / "x.siesta") == info


def test_a_sentence_reports_the_result_and_unreadable_images_are_listed(photos: Path, tmp_path: Path) -> None:
    (photos / "[red]" / "broken.png").write_text("no picture")
    (photos / "[red]" / "notes.txt").write_text("no picture, and not called one")
    done = base(tmp_path / "x.siesta", photos)
    assert done.returncode == 6
    assert "Stored 72 base images; 0 were stored already. Trained: 144 updates" in done.stdout
    assert re.search(
        r"loss [\d.]+ -> [\d.]+; on \d+ [^.]*[\d.]+ % -> [\d.]+ % \(95 % interval [^.]*\. Next: siesta learn",
        done.stdout,
    )
    assert "[red]/broken.png is not a readable image" in done.stderr and "notes.txt" not in done.stderr


def test_without_labels_it_ends_with_the_codec(tmp_path: Path, photos: Path) -> None:
    flat = tmp_path / "flat"
    flat.mkdir()
    for number, file in enumerate(sorted(photos.rglob("*.png"))):
        Image.open(file).save(flat / f"{number}.png")
    done = base(tmp_path / "x.siesta", flat)
    assert done.returncode == 0
    assert "fitted its codec" in done.stdout and "have no labels" in done.stdout
    assert "is already complete" in base(tmp_path / "x.siesta", flat).stdout


def test_the_codec_can_be_chosen(photos: Path, tmp_path: Path) -> None:
    done = base(tmp_path / "x.siesta", photos, "--codec", "raw", "--epochs", "1", "--json")
    assert json.loads(done.stdout)["status"] == "trained"
    assert result_of("info", tmp_path / "x.siesta")["codec"]["name"] == "raw"
    again = base(tmp_path / "x.siesta", photos, "--codec", "opq")
    assert "was made with codec raw, not opq" in again.stderr.replace("\n", " ")


def test_a_memory_that_is_too_small_is_mentioned(photos: Path, tmp_path: Path) -> None:
    done = base(tmp_path / "x.siesta", photos, "--memory", "2KB")
    assert done.returncode == 0
    assert "the memory holds only 31 of these samples: raise --memory" in done.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        (["--epochs", "0"], "at least one epoch"),
        (["--lr", "-1"], "above zero"),
        (["--space", "outer"], "no space 'outer'"),
        (["--data", "nowhere"], "not a folder"),
        (["--codec", "zip"], "no codec 'zip'"),
        (["--weights", "nowhere"], "no file of weights"),
    ],
)
def test_it_refuses_and_leaves_nothing(photos: Path, tmp_path: Path, options: list[str], pattern: str) -> None:
    assert_refused(3, pattern, "base", tmp_path / "x.siesta", "--data", photos, *OPTIONS, *options)
    assert [entry.name for entry in tmp_path.iterdir()] == ["photos"]


@pytest.mark.parametrize(("phase", "stored"), [("fitting the codec", 0), ("storing", 1), ("training", 200)])
def test_it_continues_after_ctrl_c_in_any_phase(
    tmp_path: Path, make_pictures: Callable[..., Path], phase: str, stored: int
) -> None:
    folder = make_pictures(tmp_path / "photos", ["robin", "wren"], each=100)
    path, options = tmp_path / "birds.siesta", ("--image-size", "32", "--epochs", "1", "--batch-size", "8")
    code, out, shown = interrupt(
        "base", path, "--data", folder, *options, when=lambda text: re.search(rf"{phase}\D+[1-9]", text) is not None
    )
    assert code == 130
    assert "un the command again" in out + shown
    known = 0
    if phase == "fitting the codec":
        assert not path.exists()
    else:
        known = sum(entry["taught"] for entry in result_of("info", path)["classes"])
        assert stored <= known <= 200
    result = result_of("base", path, "--data", folder, *options)
    assert (result["status"], result["known"], result["learned"]) == ("trained", known, 200 - known)
    assert result["training"]["updates"] == 200
