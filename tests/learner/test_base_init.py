"""Base initialisation: its result, its continuation after an interrupt, and what it refuses."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from siesta import Siesta
from siesta.contracts import Progress
from siesta.errors import BadInput
from siesta.learner.base_init import InitProgress, InitResult, initialise, is_trained, train_base
from tests.kills import count_steps, kill_this_process, run_until_killed
from tests.small import SMALL, create_small, small_codec

LABELS = ["a", "b", "c"]
OPTIONS: dict[str, Any] = {"backbone": SMALL, "image_size": 32, "memory": "1MB", "epochs": 2, "batch_size": 16}


@pytest.fixture
def photos(tmp_path: Path, make_pictures: Callable[..., Path]) -> Path:
    return make_pictures(tmp_path / "photos", LABELS, each=24)


def contents(path: Path) -> dict[str, bytes]:
    files = (file for file in path.rglob("*") if file.is_file() and file.suffix == ".safetensors")
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


class Stop:
    """A callback that presses Ctrl-C at a given progress and keeps the last one."""

    def __init__(self, phase: str, done: int) -> None:
        self.phase, self.done = phase, done
        self.last: InitProgress | None = None

    def __call__(self, progress: InitProgress) -> None:
        self.last = progress
        if progress.phase == self.phase and progress.done >= self.done:
            raise KeyboardInterrupt


def test_codec_samples_and_training_come_from_the_base_images(photos: Path, tmp_path: Path) -> None:
    seen: list[InitProgress] = []
    result = initialise(tmp_path / "x.siesta", photos, **OPTIONS, lr=0.05, seed=5, on_progress=seen.append)
    assert (result.status, result.learned, result.known, result.stored) == ("trained", 72, 0, 72)
    report = result.training
    assert report is not None and report.updates == 2 * 72 and report.classes == report.new_classes == 3
    chosen = {"policy": "uniform", "augment": "mixup_cutmix", "schedule": "steps", "optimizer": "sgd"}
    assert {**report.settings, **chosen, "lr": 0.05, "seed": 5, "batch_size": 16} == report.settings
    for phase, total in (("codec", 72), ("store", 72), ("train", 144)):
        some = [progress for progress in seen if progress.phase == phase]
        assert some[-1].done == total and {progress.total for progress in some} == {total}
    rates = [progress.training.lr for progress in seen if progress.training]
    assert rates == pytest.approx([0.05] * 3 + [0.005] * 3 + [0.0005] * 3)
    with Siesta.open(tmp_path / "x.siesta", read_only=True) as learner:
        assert is_trained(learner)
        assert learner.head.counts.tolist() == [24, 24, 24], "every base sample counts"
        assert [(entry.label, entry.stored) for entry in learner.info().classes] == [(x, 24) for x in LABELS]
        packaged, _ = small_codec()
        assert not np.array_equal(learner.pipeline.codec.state()["centroids"], packaged["centroids"])
        assert learner.predict_one(photos / "b" / "0.png").label in LABELS


def test_a_second_run_changes_nothing(photos: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.siesta"
    initialise(path, photos, **OPTIONS)
    before = contents(path)
    (path / "base.training").write_bytes(b"left behind by a kill after the training")
    assert initialise(path, photos, **OPTIONS) == InitResult("known", stored=72)
    assert contents(path) == before and not (path / "base.training").exists()
    with Siesta.open(path, read_only=True) as learner:
        assert len(learner.info().sleeps) == 1


def test_interrupted_while_fitting_the_codec_nothing_is_left(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        initialise(tmp_path / "x.siesta", photos, **OPTIONS, on_progress=Stop("codec", 40))
    assert [entry.name for entry in tmp_path.iterdir()] == ["photos"]


def test_interrupted_while_storing_the_same_call_continues_with_the_same_result(photos: Path, tmp_path: Path) -> None:
    path, straight = tmp_path / "x.siesta", tmp_path / "straight.siesta"
    initialise(straight, photos, **OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        initialise(path, photos, **OPTIONS, on_progress=Stop("store", 40))
    result = initialise(path, photos, **OPTIONS)
    assert (result.status, result.learned, result.known) == ("trained", 8, 64)
    with Siesta.open(path) as mine, Siesta.open(straight) as other:
        for name, tensor in mine.pipeline.backbone.top.state_dict().items():
            assert torch.equal(tensor, other.pipeline.backbone.top.state_dict()[name])
        assert np.array_equal(mine.head.weights(), other.head.weights())


def test_a_learner_keeps_the_options_of_its_codec(photos: Path, tmp_path: Path) -> None:
    path, options = tmp_path / "x.siesta", {"codebooks": 16}
    with pytest.raises(KeyboardInterrupt):
        initialise(path, photos, **OPTIONS, codec_options=options, on_progress=Stop("store", 8))
    with pytest.raises(BadInput, match="was made with codec option codebooks 16, not 8: give the same"):
        initialise(path, photos, **OPTIONS, codec_options={"codebooks": 8})
    assert initialise(path, photos, **OPTIONS, codec_options=options).status == "trained"


def test_an_interrupted_training_continues_and_ends_with_the_same_weights(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted after two of nine steps and, continued, after five."""
    monkeypatch.setattr("siesta.sleep.resume.CHECKPOINT_SECONDS", 0.0)
    path, straight = tmp_path / "x.siesta", tmp_path / "straight.siesta"
    steps = count_steps(monkeypatch)
    for done in (32, 80):
        result = initialise(path, photos, **OPTIONS, on_progress=Stop("train", done))
        assert (result.status, result.training, len(steps)) == ("interrupted", None, done // 16)
        with Siesta.open(path, read_only=True) as learner:
            assert not is_trained(learner) and learner.active_generation() == 0
    resumed = initialise(path, photos, **OPTIONS)
    assert len(steps) == 9 and not (path / "base.training").exists()
    whole = initialise(straight, photos, **OPTIONS)
    assert contents(path) == contents(straight)
    assert (resumed.status, resumed.learned, resumed.known) == ("trained", 0, 72)
    assert resumed.training is not None and whole.training is not None
    assert resumed.training.updates == whole.training.updates == 144
    assert initialise(path, photos, **OPTIONS).status == "known"
    with Siesta.open(path) as learner:
        assert learner.head.counts.tolist() == [24, 24, 24], "counted once"


def initialise_until_killed(path: Path, photos: Path, done: int, options: dict[str, Any]) -> None:
    def kill(progress: InitProgress) -> None:
        if progress.phase == "train" and progress.done >= done:
            kill_this_process()

    initialise(path, photos, **options, on_progress=kill)


def test_a_killed_training_continues_and_ends_with_the_same_weights(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice killed by kill -9, after three and six of nine steps."""
    path, straight = tmp_path / "x.siesta", tmp_path / "straight.siesta"
    for done in (48, 96):
        run_until_killed(initialise_until_killed, path, photos, done, OPTIONS)
    assert (path / "base.training").exists()
    steps = count_steps(monkeypatch)
    resumed = initialise(path, photos, **OPTIONS)
    assert len(steps) == 3 and not (path / "base.training").exists()
    whole = initialise(straight, photos, **OPTIONS)
    assert len(steps) == 3 + 9
    assert contents(path) == contents(straight), "bottom, codec, and every generation's top and head"
    assert (resumed.status, resumed.learned, resumed.known) == ("trained", 0, 72)
    assert resumed.training is not None and whole.training is not None
    for name in ("updates", "samples", "loss_before", "loss_after", "top_change", "accuracy_after", "settings"):
        assert getattr(resumed.training, name) == getattr(whole.training, name)


def test_the_checkpoint_of_a_training_with_other_options_is_not_used(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, straight = tmp_path / "x.siesta", tmp_path / "straight.siesta"
    run_until_killed(initialise_until_killed, path, photos, 48, OPTIONS)
    steps = count_steps(monkeypatch)
    initialise(path, photos, **OPTIONS, lr=0.02)
    initialise(straight, photos, **OPTIONS, lr=0.02)
    assert len(steps) == 2 * 9 and contents(path) == contents(straight)
    assert not (path / "base.training").exists()


def test_an_ordinary_sleep_is_not_taken_for_the_training(photos: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.siesta"
    with pytest.raises(KeyboardInterrupt):
        initialise(path, photos, **OPTIONS, on_progress=Stop("store", 72))
    with Siesta.open(path) as learner:
        learner.sleep(updates=8, batch_size=4)
    assert initialise(path, photos, **OPTIONS).status == "trained"


def test_images_without_labels_give_only_a_codec(photos: Path, tmp_path: Path) -> None:
    flat = tmp_path / "flat"
    flat.mkdir()
    for file in photos.rglob("*.png"):
        shutil.copy(file, flat / f"{file.parent.name}{file.name}")
    assert initialise(tmp_path / "x.siesta", flat, **OPTIONS).status == "unlabelled"
    with Siesta.open(tmp_path / "x.siesta", read_only=True) as learner:
        assert learner.info().samples.stored == 0 and learner.info().codec.relative_error < 0.5
    assert initialise(tmp_path / "x.siesta", flat, **OPTIONS).status == "known"
    assert initialise(tmp_path / "x.siesta", photos, **OPTIONS).status == "trained", "labels may come later"


def test_a_small_memory_stores_some_samples_and_counts_all(photos: Path, tmp_path: Path) -> None:
    result = initialise(tmp_path / "x.siesta", photos, **OPTIONS | {"memory": "2KB"})
    assert result.stored == 31 and result.learned == 72 and result.training is not None
    assert result.training.updates == 2 * 31
    with Siesta.open(tmp_path / "x.siesta") as learner:
        assert learner.head.counts.tolist() == [24, 24, 24]


def test_the_training_alone_needs_no_image_files() -> None:
    """As the harness does it, with codes from a cache."""
    learner = create_small()
    with pytest.raises(BadInput, match="no samples are stored: store base"):
        train_base(learner)
    rng = np.random.default_rng(0)
    learner.learn_encoded(learner.encode(rng.integers(0, 255, (12, 32, 32, 3), dtype=np.uint8)), ["a", "b"] * 6)
    seen: list[Progress] = []
    report = train_base(learner, 3, 4, None, 7, on_progress=lambda progress: seen.append(progress))
    assert report.updates == seen[-1].updates == 36 and report.settings["lr"] == pytest.approx(0.01 * 4 / 64)
    assert is_trained(learner)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epochs": 0}, "at least one epoch, not 0"),
        ({"batch_size": 0}, "batch size must be in 1"),
        ({"lr": -1.0}, "above zero"),
        ({"seed": -1}, "seed"),
        ({"backbone": "vgg"}, "no backbone 'vgg'"),
        ({"space": "outer"}, "no space 'outer'"),
        ({"memory": "1"}, "holds no sample"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(
    photos: Path, tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        initialise(tmp_path / "x.siesta", photos, **OPTIONS | options)
    assert [entry.name for entry in tmp_path.iterdir()] == ["photos"]


def test_a_folder_without_images_is_refused(photos: Path, tmp_path: Path) -> None:
    for folder, words in (
        (tmp_path / "nowhere", "is not a folder"),
        (tmp_path, "it should look like"),
    ):
        with pytest.raises(BadInput, match=words):
            initialise(tmp_path / "x.siesta", folder, **OPTIONS)
    with pytest.raises(BadInput, match="give a folder, not :memory:"):
        initialise(":memory:", photos, **OPTIONS)


def test_a_learner_made_with_other_settings_is_refused(photos: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.siesta"
    create_small(tmp_path / "empty.siesta").close()
    with pytest.raises(BadInput, match="was not made from base images: choose another name"):
        initialise(tmp_path / "empty.siesta", photos, **OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        initialise(path, photos, **OPTIONS, on_progress=Stop("store", 1))
    for changed, words in (
        ({"image_size": 64}, "made with image size 32, not 64"),
        ({"space": "linear"}, "made with space centred, not linear"),
        ({"memory": "2MB"}, "made with memory 1000000, not 2000000"),
        ({"cut": 1}, "made with cut 2, not 1"),
        ({"weights": "mine.pth"}, "made with weights published, not mine.pth"),
        ({"seed": 1}, "made with seed 0, not 1"),
    ):
        with pytest.raises(BadInput, match=words):
            initialise(path, photos, **OPTIONS | changed)
