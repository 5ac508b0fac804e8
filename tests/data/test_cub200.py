"""CUB-200-2011."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from siesta.data import load_dataset, make_stream
from siesta.errors import BadInput
from tests.data.layouts import cub200, write


def as_folders(archive: Path, root: Path) -> Path:
    """Move the pictures of the archive into train/ and test/."""
    dataset = load_dataset("cub200", archive)
    for part, split in (("train", dataset.train), ("test", dataset.test)):
        for name in split.names:
            (root / part / name).parent.mkdir(parents=True, exist_ok=True)
            (archive / "CUB_200_2011" / "images" / name).rename(root / part / name)
    return root


def test_the_lists_divide_pictures_into_train_and_test(tmp_path: Path) -> None:
    dataset = load_dataset("cub200", cub200(tmp_path))
    assert dataset.classes == ("001.ant", "002.bee-wild", "003.cat")
    assert dataset.test.names[:2] == ["001.ant/ant_0000.jpg", "001.ant/ant_0001.jpg"]
    assert dataset.train.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert dataset.train.pictures[0] == tmp_path / "CUB_200_2011/images/001.ant/ant_0002.jpg"
    assert load_dataset("cub200", tmp_path / "CUB_200_2011").fingerprint == dataset.fingerprint


def test_folders_made_from_the_archive_give_the_same_stream(tmp_path: Path) -> None:
    official = load_dataset("cub200", cub200(tmp_path / "archive"))
    before = official.fingerprint
    folders = load_dataset("cub200", as_folders(tmp_path / "archive", tmp_path / "folders"))
    assert folders.fingerprint == before
    one, two = (make_stream(dataset, "class_incremental", 0, classes_per_step=1) for dataset in (official, folders))
    assert one.hash == two.hash


@pytest.mark.parametrize("missing", ["image_class_labels.txt", "train_test_split.txt", "classes.txt"])
def test_a_missing_list_is_refused_with_its_name(tmp_path: Path, missing: str) -> None:
    (cub200(tmp_path) / "CUB_200_2011" / missing).unlink()
    with pytest.raises(BadInput, match=missing):
        load_dataset("cub200", tmp_path)


@pytest.mark.parametrize(
    ("file", "lines", "message"),
    [
        ("train_test_split.txt", ["1 1"], "do not give class and part of 001.ant/ant_0001.jpg"),
        ("train_test_split.txt", [f"{n} 2" for n in range(1, 19)], "do not give class and part of"),
        ("image_class_labels.txt", [f"{n} 9" for n in range(1, 19)], "do not give class and part of"),
        ("images.txt", ["1 001.ant/ant_0000.jpg", "3 001.ant/gone.jpg"], "no image .*gone.jpg"),
        ("images.txt", ["001.ant/gone.jpg"], "a line of 1 words"),
        ("classes.txt", [], "do not give class and part of"),
        ("images.txt", [], "there are no images"),
    ],
)
def test_wrong_lists_are_refused(tmp_path: Path, file: str, lines: list[str], message: str) -> None:
    write(cub200(tmp_path) / "CUB_200_2011" / file, *lines)
    with pytest.raises(BadInput, match=message):
        load_dataset("cub200", tmp_path)


def test_the_real_archive_gives_the_published_stream(shared_data: Path) -> None:
    dataset = load_dataset("cub200", shared_data / "cub200")
    assert (len(dataset.train), len(dataset.test), len(dataset.classes)) == (5994, 5794, 200)
    assert dataset.classes[0] == "001.Black_footed_Albatross" and dataset.classes[-1] == "200.Common_Yellowthroat"
    assert np.bincount(dataset.train.labels).min() >= 29 and len(dataset.fingerprint) == 64
    stream = make_stream(dataset, "class_incremental", 0, classes_per_step=50)
    assert stream.ends == (1500, 3000, 4496, 5994)
    assert stream.hash.startswith("2bacbf8c14cc7f9a"), "the order of published results"
