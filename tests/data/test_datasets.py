"""What holds for every dataset that can be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from siesta.data import DATASETS, Dataset, Split, check_dataset, load_dataset
from siesta.errors import BadInput
from siesta.images import read_image
from tests.data.layouts import LAYOUTS

EVERY = pytest.mark.parametrize("name", DATASETS)


def test_every_dataset_has_a_layout_here() -> None:
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
def test_it_is_read_whole_and_the_same_from_any_place(tmp_path: Path, name: str) -> None:
    dataset = load_dataset(name, LAYOUTS[name](tmp_path / "here"))
    assert dataset.name == name and len(dataset.classes) == 3
    for split in (dataset.train, dataset.test):
        check_split(split, 3)
    assert len(dataset.train) > len(dataset.test) > 0
    assert same(dataset, load_dataset(name, str(LAYOUTS[name](tmp_path / "there"))))


@EVERY
def test_only_the_first_classes(tmp_path: Path, name: str) -> None:
    where = LAYOUTS[name](tmp_path)
    whole, two = load_dataset(name, where), load_dataset(name, where, classes=2)
    assert two.classes == whole.classes[:2]
    check_split(two.train, 2)
    with pytest.raises(BadInput, match="3 classes"):
        load_dataset(name, where, classes=4)


@EVERY
@pytest.mark.parametrize("place", ["nothing/here", "file", "empty", "a\0b"])
def test_what_is_not_there_gets_a_sentence_with_the_layout(tmp_path: Path, name: str, place: str) -> None:
    (tmp_path / "file").write_bytes(b"no dataset")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=f"{name} should look like .*[a-z]") as caught:
        load_dataset(name, tmp_path / place)
    assert "\n" not in str(caught.value) and "Traceback" not in str(caught.value)


@EVERY
def test_an_unknown_option_is_named(name: str) -> None:
    with pytest.raises(BadInput, match="has no option 'colour'"):
        check_dataset(name, {"colour": True})
    with pytest.raises(BadInput, match=r"'classes' of dataset .* is a whole number, not '2'"):
        load_dataset(name, "nowhere", classes="2")  # type: ignore[arg-type]
    assert check_dataset(name, {"classes": 2}) == {"classes": 2}


def test_an_unknown_dataset_is_named() -> None:
    with pytest.raises(BadInput, match="no dataset 'mnist': choose one of image_folder"):
        load_dataset("mnist", "somewhere")
