"""Settings fill in defaults, refuse what makes no sense, and identify a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from siesta.errors import BadInput
from siesta.pretrain import PRETRAINERS
from siesta.pretrain.settings import DEFAULT_EPOCHS, PretrainSettings
from tests.pretrain.toys import TINY


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    for name, size in (("a.jpg", 3), ("b.jpg", 4)):
        (tmp_path / name).write_bytes(bytes(size))
    return [tmp_path / "a.jpg", tmp_path / "b.jpg"]


@pytest.mark.parametrize("name", PRETRAINERS)
def test_the_learning_rate_scales_with_the_batch_unless_it_is_given(name: str) -> None:
    recipe = PRETRAINERS[name].recipe
    assert PretrainSettings(name, batch_size=2 * recipe.batch_size).max_lr == pytest.approx(2 * recipe.lr)
    assert PretrainSettings(name, batch_size=2 * recipe.batch_size, lr=0.7).max_lr == 0.7


def test_a_run_lasts_for_epochs_or_for_seconds() -> None:
    assert PretrainSettings("swav").total_epochs == DEFAULT_EPOCHS == 2000
    assert PretrainSettings("swav", epochs=3).total_epochs == 3
    assert PretrainSettings("swav", seconds=5.0).total_epochs is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"method": "byol"}, "no method 'byol': choose one of swav, barlow_twins"),
        ({"epochs": 1, "seconds": 1.0}, "both epochs and seconds are given: give only one"),
        ({"epochs": 0}, r"epochs must be in 1\.\.1000000000, not 0"),
        ({"batch_size": 1}, r"batch size must be in 2\.\.65536, not 1"),
        ({"image_size": 8}, r"image size must be in 32\.\.1024, not 8"),
        ({"seed": -1}, "seed must be in 0"),
        ({"lr": float("inf")}, "learning rate must be above zero, not inf"),
        ({"seconds": 0.0}, r"seconds must be above zero, not 0\.0"),
        ({"options": {"colour": 1}}, "method swav has no option 'colour'"),
    ],
)
def test_values_that_make_no_sense_are_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        PretrainSettings(**{"method": "swav", **values})


def test_the_identity_has_the_keys_of_0_1_with_defaults_filled_in(tmp_path: Path, files: list[Path]) -> None:
    identity = PretrainSettings("swav", TINY, seed=3, options={"queue": 0}).identity(tmp_path, files)
    assert list(identity) == [
        "method",
        "backbone",
        "weights",
        "image_size",
        "epochs",
        "seconds",
        "batch_size",
        "seed",
        "options",
        "rate",
        "pictures",
        "start",
    ]
    assert identity["rate"] == 0.6 and identity["epochs"] == 2000 and identity["start"] is None


def test_the_identity_sees_names_and_sizes_of_pictures_but_not_their_folder(tmp_path: Path, files: list[Path]) -> None:
    settings = PretrainSettings("swav", TINY)
    before = settings.identity(tmp_path, files)
    moved = tmp_path / "moved"
    moved.mkdir()
    copies = [moved / file.name for file in files]
    for file, copy in zip(files, copies, strict=True):
        copy.write_bytes(file.read_bytes())
    assert settings.identity(moved, copies) == before
    copies[0].write_bytes(b"another length")
    assert settings.identity(moved, copies)["pictures"] != before["pictures"]
    assert settings.identity(tmp_path, files[:1])["pictures"] != before["pictures"]


def test_the_identity_sees_the_content_of_a_file_of_weights(tmp_path: Path, files: list[Path]) -> None:
    weights = tmp_path / "start.safetensors"
    settings = PretrainSettings("swav", TINY, weights=str(weights))
    hashes = []
    for content in (b"first", b"second", b"first"):
        weights.write_bytes(content)
        hashes.append(settings.identity(tmp_path, files)["start"])
    assert hashes[0] == hashes[2] != hashes[1]
