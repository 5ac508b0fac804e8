"""A run is tied to its settings, pictures and initial weights, and skips what it cannot read."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from siesta.errors import BadInput
from siesta.pretrain.run import pretrain
from siesta.pretrain.settings import PretrainSettings
from tests.pretrain.toys import QUICK, draw_textures, interrupt, quick_settings


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.safetensors"


def with_queue(name: str, queue: int) -> PretrainSettings:
    return quick_settings(name, epochs=2, options={**QUICK[name], "queue": queue})


def test_other_pictures_are_another_run(textures: Path, out: Path, tmp_path: Path) -> None:
    others = draw_textures(tmp_path / "others", seed=7)
    interrupt(quick_settings(), textures, out)
    with pytest.raises(BadInput, match="made with other images: give the same, remove it"):
        pretrain(quick_settings(), others, out)
    pretrain(quick_settings(), textures, out)
    for data, words in ((others, "made with other images"), (tmp_path / "nowhere", "is not a folder")):
        with pytest.raises(BadInput, match=words):
            pretrain(quick_settings(), data, out)


def test_a_folder_that_was_moved_is_the_same_run(textures: Path, out: Path, tmp_path: Path) -> None:
    pretrain(quick_settings(), textures, out)
    shutil.move(textures, tmp_path / "moved")
    assert pretrain(quick_settings(), tmp_path / "moved", out).status == "known"


def test_other_initial_weights_are_another_run(textures: Path, out: Path, tmp_path: Path) -> None:
    start = tmp_path / "start.safetensors"
    for seed in (1, 2):
        pretrain(quick_settings(seed=seed), textures, tmp_path / f"{seed}.safetensors")
    shutil.copy(tmp_path / "1.safetensors", start)
    interrupt(quick_settings(weights=str(start)), textures, out)
    shutil.copy(tmp_path / "2.safetensors", start)
    with pytest.raises(BadInput, match="made with other weights to start from"):
        pretrain(quick_settings(weights=str(start)), textures, out)


def test_a_default_and_its_value_are_the_same_run(textures: Path, out: Path) -> None:
    settings = quick_settings()
    pretrain(settings, textures, out)
    assert pretrain(replace(settings, lr=settings.max_lr), textures, out).status == "known"
    with pytest.raises(BadInput, match="made with epochs 1, not 2000"):
        pretrain(replace(settings, epochs=None), textures, out)


def test_a_run_of_another_size_is_refused_before_pictures_are_copied(textures: Path, out: Path, tmp_path: Path) -> None:
    interrupt(quick_settings(), textures, out)
    with pytest.raises(BadInput, match="made with image size 32, not 48"):
        pretrain(quick_settings(image_size=48), textures, out, cache=tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()


def test_two_seeds_give_different_weights(textures: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"{seed}.safetensors" for seed in (1, 2)]
    for seed, file in enumerate(files):
        pretrain(quick_settings(seed=seed), textures, file)
    assert files[0].read_bytes() != files[1].read_bytes()


def test_pictures_of_knn_that_cannot_be_read_are_named_once(textures: Path, out: Path, tmp_path: Path) -> None:
    labelled = Path(shutil.copytree(textures, tmp_path / "labelled"))
    next(labelled.glob("0/*")).write_bytes(b"no picture")
    (reason,) = pretrain(quick_settings(), textures, out, labelled=labelled).skipped
    assert "labelled" in reason
    again = pretrain(quick_settings(), labelled, tmp_path / "again.safetensors", labelled=labelled)
    assert again.skipped == (reason,)


def test_a_thin_picture_and_a_broken_link_are_skipped(textures: Path, out: Path) -> None:
    Image.new("RGB", (20_000, 20)).save(textures / "0" / "thin.png")
    (textures / "1" / "gone.png").symlink_to("nowhere.png")
    result = pretrain(quick_settings("supervised"), textures, out)
    assert result.status == "trained" and len(result.skipped) == 2
    assert "too long and thin" in result.skipped[0] and "there is no image" in result.skipped[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [({"knn_every": 0}, "must be at least 1, not 0"), ({"workers": 0}, r"workers must be in 1\.\.256, not 0")],
)
def test_numbers_that_make_no_sense_are_refused(options: dict[str, Any], words: str, textures: Path, out: Path) -> None:
    with pytest.raises(BadInput, match=words):
        pretrain(quick_settings(), textures, out, **options)


def test_supervised_training_needs_two_classes(textures: Path, out: Path, tmp_path: Path) -> None:
    shutil.copytree(textures / "0", tmp_path / "one" / "0")
    with pytest.raises(BadInput, match="supervised needs images of at least two classes"):
        pretrain(quick_settings("supervised", batch_size=4), tmp_path / "one", out)


@pytest.mark.parametrize(("name", "queue"), [("swav", 0), ("swav", 5), ("seed", 1)])
def test_queues_of_any_length_work(name: str, queue: int, textures: Path, out: Path) -> None:
    assert pretrain(with_queue(name, queue), textures, out).status == "trained"


def test_seed_needs_a_queue(textures: Path, out: Path) -> None:
    with pytest.raises(BadInput, match="must be at least 1, not 0"):
        pretrain(with_queue("seed", 0), textures, out)
