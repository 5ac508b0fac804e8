"""Folders of pictures, with and without labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from siesta.data import labelled_files, picture_files
from siesta.errors import BadInput


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")


def test_labelled_files_are_sorted_and_hidden_ones_left_out(tmp_path: Path) -> None:
    touch(tmp_path, "b/2.png", "b/1.jpg", "a/x", "a/.hidden", ".git/y.png", "loose.png", "a/deep/z.png")
    (tmp_path / "empty").mkdir()
    assert labelled_files(tmp_path) == [
        (tmp_path / "a" / "x", "a"),
        (tmp_path / "b" / "1.jpg", "b"),
        (tmp_path / "b" / "2.png", "b"),
    ]


def test_a_label_is_the_folder_s_name_verbatim(tmp_path: Path) -> None:
    labels = sorted([" padded ", "[red]", 'it\'s "1"', "深い", "a.b", "100%"])
    touch(tmp_path, *(f"{label}/p.png" for label in labels))
    assert [label for _, label in labelled_files(tmp_path)] == labels


def test_links_are_followed_and_broken_ones_are_listed(tmp_path: Path) -> None:
    touch(tmp_path, "real/a/1.png")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "linked").symlink_to(tmp_path / "real" / "a")
    (tmp_path / "real" / "a" / "broken.png").symlink_to(tmp_path / "nowhere")
    linked = tmp_path / "data" / "linked"
    assert labelled_files(tmp_path / "data") == [(linked / "1.png", "linked"), (linked / "broken.png", "linked")]


@pytest.mark.parametrize("name", ["missing", "file", "empty", "flat"])
def test_a_folder_without_labelled_pictures_is_refused_with_its_name(tmp_path: Path, name: str) -> None:
    touch(tmp_path, "file", "flat/1.png")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=name):
        labelled_files(tmp_path / name)


def test_images_without_folders_of_labels_are_not_called_absent(tmp_path: Path) -> None:
    touch(tmp_path, "1.png")
    with pytest.raises(BadInput, match="has no folders with images, one for each label"):
        labelled_files(tmp_path)


def test_picture_files_are_found_at_any_depth_by_their_suffix(tmp_path: Path) -> None:
    touch(tmp_path, "b.PNG", "a/c.jpeg", "a/b/d.webp", "notes.txt", "a/readme.md")
    (tmp_path / "folder.jpg").mkdir()
    assert picture_files(tmp_path) == sorted(tmp_path / name for name in ("b.PNG", "a/c.jpeg", "a/b/d.webp"))


def test_hidden_pictures_are_left_out_at_any_depth(tmp_path: Path) -> None:
    touch(tmp_path, "1.jpg", "._1.jpg", ".thumbnails/2.jpg")  # as macOS and file managers leave them
    assert picture_files(tmp_path) == [tmp_path / "1.jpg"]


@pytest.mark.parametrize("name", ["missing", "file", "empty"])
def test_a_folder_without_pictures_is_refused_with_its_name(tmp_path: Path, name: str) -> None:
    touch(tmp_path, "file")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=name):
        picture_files(tmp_path / name)
