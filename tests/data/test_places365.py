"""Places365-Standard."""

from __future__ import annotations

from pathlib import Path

import pytest

from siesta.data import load_dataset
from siesta.errors import BadInput
from tests.data.layouts import CLASSES, image_folder, places365, write


def test_the_official_lists_are_read(tmp_path: Path) -> None:
    dataset = load_dataset("places365", places365(tmp_path))
    assert dataset.classes == CLASSES, "bee/wild is called bee-wild as in the easy format"
    assert dataset.train.names[4] == "data_256/b/bee/wild/00000000.jpg" and dataset.train.labels[4] == 1
    assert dataset.test.names[1] == "val_256/Places365_val_00000001.jpg"
    assert dataset.test.labels.tolist() == [0, 1, 2, 0, 1, 2]


def test_the_easy_format_is_read(tmp_path: Path) -> None:
    dataset = load_dataset("places365", image_folder(tmp_path))
    assert dataset.classes == CLASSES and len(dataset.train) == 12 and len(dataset.test) == 6


def test_lists_and_pictures_may_be_in_their_other_folders(tmp_path: Path) -> None:
    places365(tmp_path)
    (tmp_path / "filelist_places365-standard").mkdir()
    for file in tmp_path.glob("*.txt"):
        file.rename(tmp_path / "filelist_places365-standard" / file.name)
    (tmp_path / "data_256").rename(tmp_path / "data_large_standard")
    (tmp_path / "val_256").rename(tmp_path / "val_large")
    assert load_dataset("places365", tmp_path).train.names[0] == "data_large_standard/a/ant/00000000.jpg"


@pytest.mark.parametrize(
    ("file", "lines", "message"),
    [
        ("places365_val.txt", ["Places365_val_00000000.jpg 3"], "'3' where a number below 3"),
        ("places365_val.txt", ["Places365_val_00000000.jpg -1"], "'-1' where a number"),
        ("places365_val.txt", ["Places365_val_00000000.jpg"], "line of 1 words"),
        ("places365_train_standard.txt", ["/a/ant/9.jpg 0"], "no image .*data_256/a/ant/9.jpg"),
        ("places365_train_standard.txt", [], "there are no images"),
        ("categories_places365.txt", ["/a/ant 0", "/b/bee/wild 0"], "gives a number twice"),
    ],
)
def test_wrong_lists_are_refused(tmp_path: Path, file: str, lines: list[str], message: str) -> None:
    write(places365(tmp_path) / file, *lines)
    with pytest.raises(BadInput, match=message):
        load_dataset("places365", tmp_path)


@pytest.mark.parametrize("missing", ["data_256", "val_256", "places365_train_standard.txt", "places365_val.txt"])
def test_a_missing_file_is_refused_with_its_name(tmp_path: Path, missing: str) -> None:
    (places365(tmp_path) / missing).rename(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match=missing):
        load_dataset("places365", tmp_path)


def test_a_list_that_is_not_text_is_refused_with_its_name(tmp_path: Path) -> None:
    (places365(tmp_path) / "places365_val.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match=r"places365_val\.txt is not a text file"):
        load_dataset("places365", tmp_path)
