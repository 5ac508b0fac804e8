"""Base initialisation: what it leaves behind, interrupted anywhere, and what it refuses."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from siesta import Siesta
from siesta.base import Advance, Initialised, initialise, is_trained, train_base
from siesta.codecs import shipped
from siesta.contracts import Progress
from siesta.errors import BadInput

LABELS = ["a", "b", "c"]
OPTIONS: dict[str, Any] = {"image_size": 32, "memory": "1MB", "epochs": 2, "batch_size": 16}


@pytest.fixture
def photos(tmp_path: Path, make_pictures: Callable[..., Path]) -> Path:
    return make_pictures(tmp_path / "photos", LABELS, each=24)


def contents(path: Path) -> dict[str, bytes]:
    files = (file for file in path.rglob("*") if file.is_file() and file.suffix == ".safetensors")
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


class Stop:
    """Ctrl-C at a moment; notes how far things came."""

    def __init__(self, phase: str, done: int) -> None:
        self.phase, self.done = phase, done
        self.last: Advance | None = None

    def __call__(self, advance: Advance) -> None:
        self.last = advance
        if advance.phase == self.phase and advance.done >= self.done:
            raise KeyboardInterrupt


def test_codec_samples_and_training_come_from_the_base_pictures(photos: Path, tmp_path: Path) -> None:
    seen: list[Advance] = []
    result = initialise(tmp_path / "x.siesta", photos, **OPTIONS, rate=0.05, seed=5, notice=seen.append)
    assert (result.status, result.learned, result.known, result.stored) == ("trained", 72, 0, 72)
    report = result.training
    assert report is not None and report.updates == 2 * 72 and report.classes == report.new_classes == 3
    chosen = {"policy": "uniform", "augment": "mixup_cutmix", "schedule": "steps", "optimizer": "sgd"}
    assert {**report.settings, **chosen, "rate": 0.05, "seed": 5, "batch_size": 16} == report.settings
    for phase, total in (("codec", 72), ("store", 72), ("train", 144)):
        some = [advance for advance in seen if advance.phase == phase]
        assert some[-1].done == total and {advance.total for advance in some} == {total}
    rates = [advance.asleep.rate for advance in seen if advance.asleep]
    assert rates == pytest.approx([0.05] * 3 + [0.005] * 3 + [0.0005] * 3)
    with Siesta.open(tmp_path / "x.siesta", read_only=True) as learner:
        assert is_trained(learner)
        assert learner._head.counts.tolist() == [24, 24, 24], "every base sample counts"
        assert [(entry["label"], entry["stored"]) for entry in learner.info()["classes"]] == [(x, 24) for x in LABELS]
        ours = shipped("efficientnet_lite0", 7)
        assert ours is not None
        assert not torch.equal(learner.pipeline.codec.state()["centroids"], ours[0]["centroids"])
        assert learner.predict_one(photos / "b" / "0.png").label in LABELS


def test_a_second_run_changes_nothing(photos: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.siesta"
    initialise(path, photos, **OPTIONS)
    before = contents(path)
    assert initialise(path, photos, **OPTIONS) == Initialised("known", stored=72)
    assert contents(path) == before
    with Siesta.open(path, read_only=True) as learner:
        assert len(learner.info()["sleeps"]) == 1


def test_stopped_while_looking_nothing_is_left(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        initialise(tmp_path / "x.siesta", photos, **OPTIONS, notice=Stop("codec", 40))
    assert [entry.name for entry in tmp_path.iterdir()] == ["photos"]


def test_stopped_while_storing_it_goes_on_and_ends_the_same(photos: Path, tmp_path: Path) -> None:
    path, straight = tmp_path / "x.siesta", tmp_path / "straight.siesta"
    initialise(straight, photos, **OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        initialise(path, photos, **OPTIONS, notice=Stop("store", 40))
    result = initialise(path, photos, **OPTIONS)
    assert (result.status, result.learned, result.known) == ("trained", 8, 64)
    with Siesta.open(path) as mine, Siesta.open(straight) as other:
        for name, tensor in mine.pipeline.backbone.top.state_dict().items():
            assert torch.equal(tensor, other.pipeline.backbone.top.state_dict()[name])
        assert torch.equal(mine._head.weights(), other._head.weights())


def test_a_training_that_was_stopped_is_run_again_in_full(photos: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.siesta"
    first = initialise(path, photos, **OPTIONS, notice=Stop("train", 32))
    assert first.status == "interrupted" and first.training is not None and first.training.updates == 32
    with Siesta.open(path) as learner:
        assert not is_trained(learner)
    again = initialise(path, photos, **OPTIONS)
    assert again.status == "trained" and again.training is not None and again.training.updates == 144
    assert (again.learned, again.known) == (0, 72)
    assert initialise(path, photos, **OPTIONS).status == "known"
    with Siesta.open(path) as learner:
        assert learner._head.counts.tolist() == [24, 24, 24], "counted once"


def test_an_ordinary_sleep_is_not_taken_for_the_training(photos: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.siesta"
    with pytest.raises(KeyboardInterrupt):
        initialise(path, photos, **OPTIONS, notice=Stop("store", 72))
    with Siesta.open(path) as learner:
        learner.sleep(updates=8, batch_size=4)
    assert initialise(path, photos, **OPTIONS).status == "trained"


def test_pictures_without_labels_give_a_codec_and_no_more(photos: Path, tmp_path: Path) -> None:
    flat = tmp_path / "flat"
    flat.mkdir()
    for file in photos.rglob("*.png"):
        shutil.copy(file, flat / f"{file.parent.name}{file.name}")
    assert initialise(tmp_path / "x.siesta", flat, **OPTIONS).status == "unlabelled"
    with Siesta.open(tmp_path / "x.siesta", read_only=True) as learner:
        assert learner.info()["samples"]["stored"] == 0 and learner.info()["codec"]["relative_error"] < 0.5
    assert initialise(tmp_path / "x.siesta", flat, **OPTIONS).status == "known"
    assert initialise(tmp_path / "x.siesta", photos, **OPTIONS).status == "trained", "labels may come later"


def test_a_small_memory_keeps_some_and_counts_all(photos: Path, tmp_path: Path) -> None:
    result = initialise(tmp_path / "x.siesta", photos, **OPTIONS | {"memory": "2KB"})
    assert result.stored == 31 and result.learned == 72 and result.training is not None
    assert result.training.updates == 2 * 31
    with Siesta.open(tmp_path / "x.siesta") as learner:
        assert learner._head.counts.tolist() == [24, 24, 24]


def test_training_alone_needs_no_pictures() -> None:
    """As the harness does it, with codes from a cache."""
    learner = Siesta.create(":memory:", image_size=32)
    with pytest.raises(BadInput, match="no base samples to train on"):
        train_base(learner)
    rng = np.random.default_rng(0)
    learner.learn_encoded(learner.encode(rng.integers(0, 255, (12, 32, 32, 3), dtype=np.uint8)), ["a", "b"] * 6)
    seen: list[Progress] = []
    report = train_base(learner, 3, 4, None, 7, on_progress=lambda progress: seen.append(progress))
    assert report.updates == seen[-1].updates == 36 and report.settings["rate"] == pytest.approx(0.01 * 4 / 64)
    assert is_trained(learner)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epochs": 0}, "at least one epoch, not 0"),
        ({"batch_size": 0}, "a batch has 1 to"),
        ({"rate": -1.0}, "above zero"),
        ({"seed": -1}, "seed"),
        ({"backbone": "vgg"}, "no backbone 'vgg'"),
        ({"space": "outer"}, "no space 'outer'"),
        ({"memory": "1"}, "holds no sample"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_done(
    photos: Path, tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        initialise(tmp_path / "x.siesta", photos, **OPTIONS | options)
    assert [entry.name for entry in tmp_path.iterdir()] == ["photos"]


def test_folders_that_do_not_fit_are_refused(photos: Path, tmp_path: Path) -> None:
    for folder, words in (
        (tmp_path / "nowhere", "is not a folder"),
        (tmp_path, "it should look like"),
    ):
        with pytest.raises(BadInput, match=words):
            initialise(tmp_path / "x.siesta", folder, **OPTIONS)
    with pytest.raises(BadInput, match="give a folder, not :memory:"):
        initialise(":memory:", photos, **OPTIONS)


def test_a_learner_that_was_made_otherwise_is_refused(photos: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.siesta"
    Siesta.create(tmp_path / "empty.siesta", image_size=32).close()
    with pytest.raises(BadInput, match="was not made from base pictures: choose another name"):
        initialise(tmp_path / "empty.siesta", photos, **OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        initialise(path, photos, **OPTIONS, notice=Stop("store", 1))
    for changed, words in (
        ({"image_size": 64}, "made with image size 32, not 64"),
        ({"space": "linear"}, "made with space centred, not linear"),
        ({"memory": "2MB"}, "made with memory 1000000, not 2000000"),
        ({"cut": 5}, "made with cut 7, not 5"),
        ({"weights": "mine.pth"}, "made with weights published, not mine.pth"),
        ({"seed": 1}, "made with seed 0, not 1"),
    ):
        with pytest.raises(BadInput, match=words):
            initialise(path, photos, **OPTIONS | changed)
