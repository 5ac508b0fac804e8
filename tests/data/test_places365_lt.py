"""Places365-LT."""

from __future__ import annotations

from pathlib import Path

import pytest

from siesta.data import load_dataset
from siesta.errors import BadInput
from tests.data.layouts import CLASSES, places365_lt, write


def test_it_is_tested_on_the_validation_list_as_in_the_paper(tmp_path: Path) -> None:
    dataset = load_dataset("places365_lt", places365_lt(tmp_path))
    assert dataset.classes == CLASSES
    assert dataset.train.names[0] == "train/ant/00000000.jpg" and dataset.test.names[0] == "train/ant/00000004.jpg"
    assert load_dataset("places365_lt", tmp_path, test="test").test.names[0] == "train/ant/00000010.jpg"


def test_lists_may_be_in_another_folder(tmp_path: Path) -> None:
    places365_lt(tmp_path / "pictures")
    (tmp_path / "lists").mkdir()
    for file in (tmp_path / "pictures").glob("*.txt"):
        file.rename(tmp_path / "lists" / file.name)
    assert len(load_dataset("places365_lt", tmp_path / "pictures", lists=str(tmp_path / "lists")).train) == 12


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["train/ant/00000000.jpg 0", "train/cat/00000000.jpg 2"], "where a number below 2|leaves out a class"),
        (["train/ant/00000000.jpg 0", "train/ant/00000001.jpg 2", "train/ant/00000002.jpg 2"], "leaves out a class"),
        ([f"train/ant/0000000{n}.jpg {n}" for n in range(3)], "two classes of the same name"),
        (["train/ant/00000000.jpg zero"], "'zero' where a number"),
        (["train/ant/00000000.jpg 0"], "'1' where a number below 1"),
    ],
)
def test_wrong_lists_are_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    write(places365_lt(tmp_path) / "Places_LT_train.txt", *lines)
    with pytest.raises(BadInput, match=message):
        load_dataset("places365_lt", tmp_path)


def test_the_test_list_is_val_or_test(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="val or test, not 'train'"):
        load_dataset("places365_lt", tmp_path, test="train")
