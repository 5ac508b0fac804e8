"""Listing what lies on disk, and sentences about what does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from siesta.data.layout import Layout
from siesta.errors import BadInput
from tests.data.layouts import folders, write


def test_an_error_says_what_where_and_how_it_should_be(tmp_path: Path) -> None:
    error = Layout("birds", tmp_path, "eggs/*.jpg").wrong("there are no eggs")
    assert str(error) == f"there are no eggs: birds should look like eggs/*.jpg, below {tmp_path}"


def test_trees_are_sorted_with_their_relative_names(tmp_path: Path) -> None:
    folders(tmp_path, "train", ("b", "a"), 2, "images")
    layout = Layout("d", tmp_path, "")
    assert layout.tree("train", "images") == {
        "a": ["train/a/images/a_train_0.JPEG", "train/a/images/a_train_1.JPEG"],
        "b": ["train/b/images/b_train_0.JPEG", "train/b/images/b_train_1.JPEG"],
    }
    assert layout.tree("train") == {"a": [], "b": []}


def test_lines_and_pairs_leave_out_blanks_and_marks(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes(b"\xef\xbb\xbfa.jpg 1\r\n\r\n  b.jpg\t2  \n")
    layout = Layout("d", tmp_path, "")
    assert layout.lines("list.txt") == ["a.jpg 1", "b.jpg\t2"]
    assert layout.pairs("list.txt") == [("a.jpg", "1"), ("b.jpg", "2")]
    write(tmp_path / "list.txt", "a 1", "b c 2")
    with pytest.raises(BadInput, match=r"list\.txt has a line of 3 words, 'b c 2'"):
        layout.pairs("list.txt")


@pytest.mark.parametrize("text", ["3", "-1", "1.0", "", "²", "x"])
def test_numbers_are_whole_and_below(tmp_path: Path, text: str) -> None:
    layout = Layout("d", tmp_path, "")
    assert layout.number("2", 3, "list") == 2
    with pytest.raises(BadInput, match="where a number below 3 should be"):
        layout.number(text, 3, "list")


def test_the_first_and_the_last_picture_must_be_there(tmp_path: Path) -> None:
    for name in ("a", "c"):
        (tmp_path / name).touch()
    layout = Layout("d", tmp_path, "")
    split = layout.split(["a", "b", "c"], [0, 1, 0])
    assert split.pictures[1] == tmp_path / "b" and split.labels.dtype == np.int32
    with pytest.raises(BadInput, match="named twice"):
        layout.split(["a", "c", "c"], [0, 1, 0])
    for names in (["b", "c"], ["a", "b"]):
        with pytest.raises(BadInput, match=r"there is no picture .*/b"):
            layout.split(names, [0, 1])
