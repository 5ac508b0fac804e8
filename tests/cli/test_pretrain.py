"""`siesta pretrain`: what it prints and how it ends."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from typer.testing import CliRunner, Result

from siesta.backbones import BACKBONES, make_backbone, save_checkpoint
from siesta.cli.app import app
from siesta.errors import BadInput, Damaged
from siesta.learner import Siesta
from siesta.pretrain.collapse import collapse_indicators
from tests.pretrain.toys import TINY, TINY_SPEC, draw_textures

SMALL = ["--image-size", "32", "--epochs", "2", "--batch-size", "16"]
OPTIONS = [*SMALL, "--backbone", TINY, "--set", "prototypes=12", "--set", "hidden=16", "--set", "queue=16"]


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(BACKBONES, TINY, TINY_SPEC)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return draw_textures(tmp_path / "photos")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "swav.safetensors"


def pretrain(out: Path, data: Path, *options: str, method: str = "swav") -> Result:
    return CliRunner().invoke(app, ["pretrain", method, "--data", str(data), "--out", str(out), *OPTIONS, *options])


def answer(done: Result) -> Any:
    return json.loads(done.stdout)


def test_a_run_writes_weights_and_the_same_command_changes_nothing(photos: Path, out: Path) -> None:
    first = pretrain(out, photos, "--knn", str(photos), "--knn-every", "1", "--json")
    assert first.exit_code == 0
    result = answer(first)
    assert result["status"] == "trained" and result["pictures"] == 96 and result["epochs"] == 2
    assert all(0 <= epoch["knn"] <= 100 for epoch in result["history"]) and len(result["history"]) == 3
    assert "images/s" in first.stderr and "left" in first.stderr and "loss" in first.stderr
    second = pretrain(out, photos)
    assert second.exit_code == 0 and "was written by the same run before; nothing was changed" in second.stdout
    other = pretrain(out, photos, "--seed", "7")
    assert isinstance(other.exception, BadInput) and "was made with seed 0, not 7" in str(other.exception)


def test_the_summary_counts_pictures_and_names_unreadable_ones(photos: Path, out: Path) -> None:
    (photos / "0" / "broken.jpg").write_text("no picture")
    done = pretrain(out, photos)
    assert done.exit_code == 6
    assert "96 images in" in done.stdout and "2.0 epochs, loss" in done.stdout
    assert "broken.jpg is not a readable image" in done.stderr


def test_ctrl_c_stops_a_run_that_can_be_resumed(photos: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = out.with_name("whole.safetensors")
    steps: list[int] = []

    def interrupted(*arguments: Any) -> Any:
        steps.append(1)
        if len(steps) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return collapse_indicators(*arguments)

    monkeypatch.setattr("siesta.pretrain.loop.collapse_indicators", interrupted)
    first = pretrain(out, photos)
    assert first.exit_code == 130 and "Run the same command to resume" in first.stdout
    assert out.with_name(f"{out.name}.part").exists() and not out.exists()
    other = pretrain(out, photos, "--lr", "0.3")
    assert isinstance(other.exception, BadInput) and "was made with rate 0.15, not 0.3" in str(other.exception)
    assert pretrain(out, photos).exit_code == 0 and len(steps) == 6
    assert pretrain(whole, photos).exit_code == 0
    assert out.read_bytes() == whole.read_bytes()


def test_a_damaged_checkpoint_is_refused_with_its_name(photos: Path, out: Path) -> None:
    out.with_name(f"{out.name}.part").write_bytes(b"nothing")
    done = pretrain(out, photos)
    assert isinstance(done.exception, Damaged) and "remove it to start from the beginning" in str(done.exception)


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A file of weights of the tiny network, none of them initial ones."""
    network = make_backbone(TINY, 0, weights="random")
    with torch.no_grad():
        for parameter in network.top.parameters():
            parameter.add_(1.0)
    save_checkpoint(network, tmp_path / "trained.safetensors")
    return tmp_path / "trained.safetensors"


def random_top(weights: Path, out: Path, *options: str) -> Result:
    command = ["pretrain", "random", "--backbone", TINY, "--weights", str(weights), "--out", str(out), *options]
    return CliRunner().invoke(app, command)


def test_random_keeps_the_bottom_of_a_file(trained: Path, out: Path) -> None:
    done = random_top(trained, out)
    assert done.exit_code == 0 and "under a random top" in done.stdout and f"--backbone {TINY}" in done.stdout
    mixed, original, fresh = (make_backbone(TINY, weights=weights) for weights in (out, trained, "random"))
    for part, source in (("bottom", original), ("top", fresh)):
        state = getattr(source, part).state_dict()
        assert all(torch.equal(tensor, state[name]) for name, tensor in getattr(mixed, part).state_dict().items())


def test_random_answers_in_json(trained: Path, out: Path) -> None:
    assert answer(random_top(trained, out, "--json")) == {"status": "made", "out": str(out), "weights": str(trained)}


def test_random_refuses_options_of_training_and_existing_files(trained: Path, out: Path) -> None:
    cases = [
        (random_top(trained, out, "--data", "x", "--lr", "1", "--seed", "5"), "remove --data, --lr, --seed"),
        (random_top(trained, trained), "exists already"),
        (
            CliRunner().invoke(app, ["pretrain", "random", "--out", str(out)]),
            "give the file of its weights as --weights",
        ),
    ]
    for done, words in cases:
        assert isinstance(done.exception, BadInput) and words in str(done.exception)
    assert not out.exists()


def test_a_learner_uses_the_trained_weights(photos: Path, out: Path) -> None:
    assert pretrain(out, photos).exit_code == 0
    with Siesta.create(":memory:", backbone=TINY, weights=out, codec="raw", image_size=32, engine="torch") as learner:
        for label in ("0", "3"):
            learner.learn_many(sorted((photos / label).iterdir()), [label] * 12)
        assert learner.info().backbone.weights.source == out.name
        assert learner.predict_one(photos / "3" / "0.png").label in ("0", "3")


def test_the_network_of_the_paper_is_trained_and_cut(photos: Path, out: Path) -> None:
    command = ["pretrain", "swav", "--data", str(photos), "--out", str(out), *SMALL, "--epochs", "1"]
    assert CliRunner().invoke(app, command).exit_code == 0
    backbone = make_backbone("mobilenet_v3_large", weights=out)
    assert backbone.latent_shape(32) == (80, 2, 2) and backbone.ignored == ()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--data", "nowhere"], "nowhere is not a folder"),
        (["--batch-size", "64"], "48 images do not make a batch of 64: give more, or a smaller batch size"),
        (["--batch-size", "1"], "batch size must be in 2..65536, not 1"),
        (["--epochs", "0"], "epochs must be in 1..1000000000, not 0"),
        (["--seconds", "5"], "both epochs and seconds are given: give only one"),
        (["--image-size", "8"], "image size must be in 32..1024, not 8"),
        (["--lr", "-1"], "learning rate must be above zero, not -1"),
        (["--backbone", "nobody"], "no backbone 'nobody'"),
        (["--weights", "nowhere"], "no file of weights at nowhere"),
        (["--set", "prototypes"], "'prototypes' is not of the form name=value: write it like prototypes=300"),
        (["--set", "colour=3"], "method swav has no option 'colour': it has prototypes"),
        (["--set", "prototypes=many"], "option 'prototypes' of method swav must be a whole number, not 'many'"),
        (["--set", "prototypes=0"], "option 'prototypes' of method swav must be in 2..1e+06, not 0"),
        (["--set", "epsilon=0"], "option 'epsilon' of method swav must be in 0.001..100, not 0"),
        (["--seed", "99999999999999999999"], "seed must be in 0..9223372036854775807"),
        (["--workers", "0"], "workers must be in 1..256, not 0"),
        (["--cache", "/proc/nowhere"], "the folder of /proc/nowhere does not exist"),
        (["--knn", "nowhere"], "nowhere is not a folder"),
        (["--out", "nowhere/x.safetensors"], "the folder of nowhere/x.safetensors does not exist"),
    ],
)
def test_wrong_options_are_refused_and_leave_no_files(photos: Path, out: Path, options: list[str], words: str) -> None:
    done = pretrain(out, photos, *options)
    assert isinstance(done.exception, BadInput) and words in str(done.exception)
    assert {entry.name for entry in out.parent.iterdir()} <= {"photos", "cache"}


def test_wrong_data_is_refused(photos: Path, out: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    teacher = tmp_path / "teacher.safetensors"
    flat = tmp_path / "flat"
    flat.mkdir()
    Image.new("RGB", (40, 40)).save(flat / "a.png")
    assert pretrain(teacher, photos).exit_code == 0
    seed = ["pretrain", "seed", "--data", str(photos), "--out", str(out), *SMALL, "--backbone", TINY]
    cases = [
        (pretrain(out, photos, method="byol"), "no method 'byol': choose one of swav, barlow_twins"),
        (pretrain(out, tmp_path / "empty"), "has no image files"),
        (
            CliRunner().invoke(app, ["pretrain", "supervised", "--data", str(flat), "--out", str(out)]),
            "no folders with images",
        ),
        (CliRunner().invoke(app, ["pretrain", "swav", "--out", str(out)]), "give a folder of them as --data"),
        (
            CliRunner().invoke(app, [*seed, "--set", "teacher=resnet18", "--set", f"teacher_weights={teacher}"]),
            "does not fit this network",
        ),
    ]
    for done, words in cases:
        assert isinstance(done.exception, BadInput) and words in str(done.exception)
    assert not out.exists()
