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

from siesta.backbones import BACKBONES, make_backbone
from siesta.cli.app import app
from siesta.errors import BadInput, Damaged
from siesta.learner import Siesta
from siesta.pretrain import loop
from tests.pretrain.toys import RECIPE, TINY, draw_textures

SMALL = ["--image-size", "32", "--epochs", "2", "--batch-size", "16"]
OPTIONS = [*SMALL, "--backbone", TINY, "--set", "prototypes=12", "--set", "hidden=16", "--set", "queue=16"]


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(BACKBONES, TINY, RECIPE)
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


def test_from_pictures_to_weights_and_once_more(photos: Path, out: Path) -> None:
    first = pretrain(out, photos, "--knn", str(photos), "--knn-every", "1", "--json")
    assert first.exit_code == 0
    result = answer(first)
    assert result["status"] == "trained" and result["pictures"] == 96 and result["epochs"] == 2
    assert all(0 <= epoch["knn"] <= 100 for epoch in result["history"]) and len(result["history"]) == 3
    assert "pictures/s" in first.stderr and "left" in first.stderr and "loss" in first.stderr
    second = pretrain(out, photos)
    assert second.exit_code == 0 and "was made so already; nothing was changed" in second.stdout
    other = pretrain(out, photos, "--seed", "7")
    assert isinstance(other.exception, BadInput) and "was made with seed 0, not 7" in str(other.exception)


def test_words_for_people_and_a_picture_that_cannot_be_read(photos: Path, out: Path) -> None:
    (photos / "0" / "broken.jpg").write_text("no picture")
    done = pretrain(out, photos)
    assert done.exit_code == 6
    assert "96 pictures in" in done.stdout and "2.0 epochs, loss" in done.stdout
    assert "broken.jpg is not a readable picture" in done.stderr


def test_ctrl_c_and_on(photos: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, step, steps = out.with_name("whole.safetensors"), loop._step, []

    def interrupted(*arguments: Any) -> Any:
        steps.append(1)
        if len(steps) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return step(*arguments)

    monkeypatch.setattr(loop, "_step", interrupted)
    first = pretrain(out, photos)
    assert first.exit_code == 130 and "Run it again to go on" in first.stdout
    assert out.with_name(f"{out.name}.part").exists() and not out.exists()
    other = pretrain(out, photos, "--lr", "0.3")
    assert isinstance(other.exception, BadInput) and "was made with rate 0.15, not 0.3" in str(other.exception)
    assert pretrain(out, photos).exit_code == 0 and len(steps) == 6
    assert pretrain(whole, photos).exit_code == 0
    assert out.read_bytes() == whole.read_bytes()


def test_a_damaged_checkpoint_is_named(photos: Path, out: Path) -> None:
    out.with_name(f"{out.name}.part").write_bytes(b"nothing")
    done = pretrain(out, photos)
    assert isinstance(done.exception, Damaged) and "remove it to begin anew" in str(done.exception)


def test_random_keeps_the_bottom_of_a_file(photos: Path, out: Path) -> None:
    assert pretrain(out, photos).exit_code == 0
    other = out.with_name("random.safetensors")
    arguments = ["pretrain", "random", "--backbone", TINY, "--weights", str(out), "--out", str(other)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0 and "under a fresh top" in done.stdout and f"--backbone {TINY}" in done.stdout
    again = CliRunner().invoke(app, arguments)
    assert isinstance(again.exception, BadInput) and "exists already" in str(again.exception)
    useless = CliRunner().invoke(app, [*arguments, "--data", "x", "--lr", "1", "--seed", "5"])
    assert isinstance(useless.exception, BadInput) and "leave out --data, --lr, --seed" in str(useless.exception)
    told = CliRunner().invoke(app, [*arguments[:-1], str(out.with_name("third.safetensors")), "--json"])
    assert answer(told)["status"] == "made"
    trained, mixed, fresh = (make_backbone(TINY, weights=weights) for weights in (out, other, "random"))
    for part, same, different in (("bottom", trained, fresh), ("top", fresh, trained)):
        state = getattr(mixed, part).state_dict()
        assert all(torch.equal(tensor, state[name]) for name, tensor in getattr(same, part).state_dict().items())
        assert any(
            not torch.equal(tensor, state[name]) for name, tensor in getattr(different, part).state_dict().items()
        )
    alone = CliRunner().invoke(app, ["pretrain", "random", "--out", str(other)])
    assert isinstance(alone.exception, BadInput) and "give the file that has it as --weights" in str(alone.exception)


def test_a_learner_on_what_was_trained(photos: Path, out: Path) -> None:
    assert pretrain(out, photos).exit_code == 0
    with Siesta.create(":memory:", backbone=TINY, weights=out, codec="raw", image_size=32, engine="torch") as learner:
        for label in ("0", "3"):
            learner.learn_many(sorted((photos / label).iterdir()), [label] * 12)
        assert learner.info()["backbone"]["weights"]["from"] == out.name
        assert learner.predict_one(photos / "3" / "0.png").label in ("0", "3")


def test_the_papers_network_at_its_cut(photos: Path, out: Path) -> None:
    command = ["pretrain", "swav", "--data", str(photos), "--out", str(out), *SMALL, "--epochs", "1"]
    assert CliRunner().invoke(app, command).exit_code == 0
    backbone = make_backbone("mobilenet_v3_large", weights=out)
    assert backbone.latent_shape(32) == (80, 2, 2) and backbone.ignored == ()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--data", "nowhere"], "nowhere is not a folder"),
        (["--batch-size", "64"], "48 pictures do not make a batch of 64: give more, or a smaller batch size"),
        (["--batch-size", "1"], "batch size lies in 2..65536, not 1"),
        (["--epochs", "0"], "epochs lies in 1..1000000000, not 0"),
        (["--seconds", "5"], "by epochs or by seconds, not by both"),
        (["--image-size", "8"], "image size lies in 32..1024, not 8"),
        (["--lr", "-1"], "rate must be above zero, not -1"),
        (["--backbone", "nobody"], "no backbone 'nobody'"),
        (["--weights", "nowhere"], "no file of weights at nowhere"),
        (["--set", "prototypes"], "'prototypes' sets nothing: write it like prototypes=300"),
        (["--set", "colour=3"], "method swav has no option 'colour': it has prototypes"),
        (["--set", "prototypes=many"], "option 'prototypes' of method swav is a whole number, not 'many'"),
        (["--set", "prototypes=0"], "option 'prototypes' of method swav lies in 2..1e+06, not 0"),
        (["--set", "epsilon=0"], "option 'epsilon' of method swav lies in 0.001..100, not 0"),
        (["--seed", "99999999999999999999"], "seed lies in 0..9223372036854775807"),
        (["--workers", "0"], "1 to 256 workers cut crops, not 0"),
        (["--cache", "/proc/nowhere"], "the folder of /proc/nowhere does not exist"),
        (["--knn", "nowhere"], "nowhere is not a folder"),
        (["--out", "nowhere/x.safetensors"], "the folder of nowhere/x.safetensors does not exist"),
    ],
)
def test_it_refuses_and_leaves_nothing(photos: Path, out: Path, options: list[str], words: str) -> None:
    done = pretrain(out, photos, *options)
    assert isinstance(done.exception, BadInput) and words in str(done.exception)
    assert {entry.name for entry in out.parent.iterdir()} <= {"photos", "cache"}


def test_other_bad_input(photos: Path, out: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    teacher = tmp_path / "teacher.safetensors"
    flat = tmp_path / "flat"
    flat.mkdir()
    Image.new("RGB", (40, 40)).save(flat / "a.png")
    assert pretrain(teacher, photos).exit_code == 0
    seed = ["pretrain", "seed", "--data", str(photos), "--out", str(out), *SMALL, "--backbone", TINY]
    cases = [
        (pretrain(out, photos, method="byol"), "no method 'byol': choose one of swav, barlow_twins"),
        (pretrain(out, tmp_path / "empty"), "has no picture files"),
        (CliRunner().invoke(app, ["pretrain", "supervised", "--data", str(flat), "--out", str(out)]), "no pictures"),
        (CliRunner().invoke(app, ["pretrain", "swav", "--out", str(out)]), "give a folder of them as --data"),
        (
            CliRunner().invoke(app, [*seed, "--set", "teacher=resnet18", "--set", f"teacher_weights={teacher}"]),
            "does not fit this network",
        ),
    ]
    for done, words in cases:
        assert isinstance(done.exception, BadInput) and words in str(done.exception)
    assert not out.exists()
