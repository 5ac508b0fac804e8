"""Conformance: what every data set must do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from siesta.data import DATASETS, Dataset, Split, check_dataset, from_arrays, load_dataset
from siesta.errors import BadInput
from siesta.images import read_image
from tests.data.layouts import LAYOUTS

EVERY = pytest.mark.parametrize("name", DATASETS)


def test_every_data_set_has_a_small_copy() -> None:
    assert set(LAYOUTS) == set(DATASETS)


def check_split(split: Split, classes: int) -> None:
    assert split.labels.dtype == np.int32
    assert len(set(split.names)) == len(split.names) == len(split) == len(split.pictures)
    assert set(split.labels.tolist()) == set(range(classes))
    assert all(not name.startswith("/") and "\\" not in name for name in split.names)
    for picture in split.pictures:
        if isinstance(picture, np.ndarray):
            assert picture.ndim == 3 and picture.shape[2] == 3 and picture.dtype == np.uint8
        assert read_image(picture, 16).shape == (16, 16, 3)
    seen = {read_image(picture, 16).tobytes() for picture in split.pictures}
    assert len(seen) == len(split), "each picture is its own"


def same(first: Dataset, second: Dataset) -> bool:
    names = [(list(part.names), part.labels.tolist()) for part in (first.train, first.test, second.train, second.test)]
    return names[:2] == names[2:] and first.classes == second.classes and first.fingerprint == second.fingerprint


@EVERY
def test_a_data_set_is_the_same_from_any_folder(tmp_path: Path, name: str) -> None:
    dataset = load_dataset(name, LAYOUTS[name](tmp_path / "here"))
    assert dataset.name == name and len(dataset.classes) == 3
    for split in (dataset.train, dataset.test):
        check_split(split, 3)
    assert len(dataset.train) > len(dataset.test) > 0
    assert same(dataset, load_dataset(name, str(LAYOUTS[name](tmp_path / "there"))))


@EVERY
def test_the_first_classes_can_be_selected(tmp_path: Path, name: str) -> None:
    where = LAYOUTS[name](tmp_path)
    whole, two = load_dataset(name, where), load_dataset(name, where, classes=2)
    assert two.classes == whole.classes[:2]
    check_split(two.train, 2)
    with pytest.raises(BadInput, match="3 classes"):
        load_dataset(name, where, classes=4)


@EVERY
def test_some_training_images_of_each_class_can_be_selected(tmp_path: Path, name: str) -> None:
    where = LAYOUTS[name](tmp_path)
    whole, few = load_dataset(name, where), load_dataset(name, where, images_per_class=2)
    assert few.classes == whole.classes and len(few.test) == len(whole.test)
    assert np.bincount(few.train.labels).tolist() == [2, 2, 2]
    assert np.bincount(load_dataset(name, where, classes=2, images_per_class=1).train.labels).tolist() == [1, 1]


@EVERY
@pytest.mark.parametrize("place", ["nothing/here", "file", "empty", "a\0b"])
def test_a_missing_or_wrong_folder_is_refused_with_the_expected_layout(tmp_path: Path, name: str, place: str) -> None:
    (tmp_path / "file").write_bytes(b"no dataset")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=f"{name} should look like .*[a-z]") as caught:
        load_dataset(name, tmp_path / place)
    assert "\n" not in str(caught.value) and "Traceback" not in str(caught.value)


@EVERY
def test_an_unknown_option_is_named(name: str) -> None:
    with pytest.raises(BadInput, match="has no option 'colour'"):
        check_dataset(name, {"colour": True})
    with pytest.raises(BadInput, match=r"'classes' of dataset .* must be a whole number, not '2'"):
        load_dataset(name, "nowhere", classes="2")  # type: ignore[arg-type]
    assert check_dataset(name, {"classes": 2}) == {"classes": 2}


def test_an_unknown_dataset_is_named() -> None:
    with pytest.raises(BadInput, match="no dataset 'mnist': choose one of image_folder"):
        load_dataset("mnist", "somewhere")


def test_a_function_can_be_given_in_place_of_a_name(tmp_path: Path) -> None:
    def mine(path: Path, *, size: int = 4) -> Dataset:
        rng = np.random.default_rng(size)
        pixels, numbers = rng.integers(0, 255, (size, 8, 8, 3), np.uint8), np.arange(size) % 2
        return from_arrays(pixels, numbers, pixels, numbers, name=path.name)

    dataset = load_dataset(mine, tmp_path, size=6, classes=1)
    assert dataset.name == tmp_path.name and len(dataset.train) == 3
    with pytest.raises(BadInput, match="dataset mine has no option 'colour': it has size"):
        load_dataset(mine, tmp_path, colour="red")
