"""Listing the files of a data set, and errors about missing ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from siesta.data.dataset_folder import DatasetFolder
from siesta.errors import BadInput
from tests.data.layouts import folders, write


def test_an_error_states_the_problem_and_the_expected_layout(tmp_path: Path) -> None:
    error = DatasetFolder("birds", tmp_path, "eggs/*.jpg").error("there are no eggs")
    assert str(error) == f"there are no eggs: birds should look like eggs/*.jpg, below {tmp_path}"


def test_files_of_classes_are_sorted_relative_names(tmp_path: Path) -> None:
    folders(tmp_path, "train", ("b", "a"), 2, "images")
    folder = DatasetFolder("d", tmp_path, "")
    assert folder.class_files("train", "images") == {
        "a": ["train/a/images/a_train_0.JPEG", "train/a/images/a_train_1.JPEG"],
        "b": ["train/b/images/b_train_0.JPEG", "train/b/images/b_train_1.JPEG"],
    }
    assert folder.class_files("train") == {"a": [], "b": []}


def test_lines_and_pairs_leave_out_blanks_and_byte_order_marks(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes(b"\xef\xbb\xbfa.jpg 1\r\n\r\n  b.jpg\t2  \n")
    folder = DatasetFolder("d", tmp_path, "")
    assert folder.read_lines("list.txt") == ["a.jpg 1", "b.jpg\t2"]
    assert folder.read_pairs("list.txt") == [("a.jpg", "1"), ("b.jpg", "2")]
    write(tmp_path / "list.txt", "a 1", "b c 2")
    with pytest.raises(BadInput, match=r"list\.txt has a line of 3 words, 'b c 2'"):
        folder.read_pairs("list.txt")


@pytest.mark.parametrize("text", ["3", "-1", "1.0", "", "²", "x"])
def test_an_index_is_a_whole_number_below_the_count(tmp_path: Path, text: str) -> None:
    folder = DatasetFolder("d", tmp_path, "")
    assert folder.parse_index("2", 3, "list") == 2
    with pytest.raises(BadInput, match="where a number below 3 should be"):
        folder.parse_index(text, 3, "list")


def test_the_first_and_the_last_picture_must_exist(tmp_path: Path) -> None:
    for name in ("a", "c"):
        (tmp_path / name).touch()
    folder = DatasetFolder("d", tmp_path, "")
    split = folder.make_split(["a", "b", "c"], [0, 1, 0])
    assert split.pictures[1] == tmp_path / "b" and split.labels.dtype == np.int32
    with pytest.raises(BadInput, match="named twice"):
        folder.make_split(["a", "c", "c"], [0, 1, 0])
    for names in (["b", "c"], ["a", "b"]):
        with pytest.raises(BadInput, match=r"there is no image .*/b"):
            folder.make_split(names, [0, 1])
