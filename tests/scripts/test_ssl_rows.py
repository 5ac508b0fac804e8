"""Rows of results are appended with their provenance, and pictures are linked by class."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.ssl_rows import add_row, link_pictures, picture_labels, pictures_of_classes, read_rows
from siesta.data import Dataset, load_dataset


@pytest.fixture
def data(textures: Path) -> Dataset:
    return load_dataset("image_folder", textures)


def test_rows_are_appended_with_their_provenance(tmp_path: Path) -> None:
    assert read_rows(tmp_path, "chain") == []
    for step in (0, 1):
        add_row(tmp_path, "chain", {"step": step})
    rows = read_rows(tmp_path, "chain")
    assert [row["step"] for row in rows] == [0, 1] and all({"date", "commit"} <= set(row) for row in rows)


def test_pictures_of_some_classes_keep_their_labels(data: Dataset) -> None:
    every, some = picture_labels(data, data.train), pictures_of_classes(data, data.train, 1, 3)
    assert len(every) == 80 and {label for _, label in every} == {"0", "1", "2", "3"}
    assert some == [(file, label) for file, label in every if label in ("1", "2")]


def test_linked_pictures_are_folders_of_classes_and_are_linked_once(data: Dataset, tmp_path: Path) -> None:
    for _ in range(2):
        folder = link_pictures("test", picture_labels(data, data.test), tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["0", "1", "2", "3"]
    links = list(folder.rglob("*.png"))
    assert len(links) == 80 and all(link.is_symlink() and link.is_file() for link in links)
