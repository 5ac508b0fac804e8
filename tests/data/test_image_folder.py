"""Folders of classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from siesta.data import load_dataset
from siesta.errors import BadInput
from tests.data.layouts import CLASSES, folders, image_folder, picture, write


def test_names_are_paths_and_classes_are_sorted(tmp_path: Path) -> None:
    dataset = load_dataset("image_folder", image_folder(tmp_path))
    assert dataset.classes == tuple(sorted(CLASSES))
    assert dataset.train.names[0] == "train/ant/ant_train_0.JPEG"
    assert dataset.train.pictures[0] == tmp_path / "train/ant/ant_train_0.JPEG"
    assert list(dataset.train.names) == sorted(dataset.train.names)
    assert dataset.train.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_test_is_preferred_to_val_unless_an_option_selects_it(tmp_path: Path) -> None:
    folders(image_folder(tmp_path), "test", CLASSES[:1], 1)
    assert list(load_dataset("image_folder", tmp_path).test.names) == ["test/ant/ant_test_0.JPEG"]
    assert len(load_dataset("image_folder", tmp_path, test="val").test) == 6
    with pytest.raises(BadInput, match="no more in"):
        load_dataset("image_folder", tmp_path, test="more")


def test_only_pictures_count_and_hidden_ones_do_not(tmp_path: Path) -> None:
    image_folder(tmp_path)
    write(tmp_path / "train" / "ant" / "notes.txt", "x")
    picture(tmp_path / "train" / "ant" / ".hidden.jpg")
    picture(tmp_path / "train" / ".cache" / "x.jpg")
    picture(tmp_path / "train" / "loose.jpg")
    (tmp_path / "train" / "ant" / "folder.jpg").mkdir()
    assert len(load_dataset("image_folder", tmp_path).train) == 12


def test_links_are_followed(tmp_path: Path) -> None:
    image_folder(tmp_path / "real")
    for part in ("train", "val"):
        (tmp_path / "linked" / part).mkdir(parents=True)
        (tmp_path / "linked" / part / "ant").symlink_to(tmp_path / "real" / part / "ant")
    assert len(load_dataset("image_folder", tmp_path / "linked").train) == 4


@pytest.mark.parametrize("missing", ["train", "val"])
def test_a_missing_part_is_refused_with_its_name(tmp_path: Path, missing: str) -> None:
    (image_folder(tmp_path) / missing).rename(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match=missing):
        load_dataset("image_folder", tmp_path)


def test_classes_of_the_test_must_have_training_pictures(tmp_path: Path) -> None:
    folders(image_folder(tmp_path), "val", ("dog",), 1)
    with pytest.raises(BadInput, match="dog has test images and no training images"):
        load_dataset("image_folder", tmp_path)
    (tmp_path / "train" / "dog").mkdir()
    with pytest.raises(BadInput, match="dog has no training images"):
        load_dataset("image_folder", tmp_path)
