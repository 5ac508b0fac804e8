"""Copies of pictures: made once, small, and honest about what could not be read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from siesta.errors import BadInput
from siesta.pretrain import pictures
from siesta.pretrain.pictures import copied


@pytest.fixture
def files(textures: Path) -> list[Path]:
    return sorted(textures.rglob("*.png"))[:5]


def test_copies_look_like_their_pictures_and_are_made_once(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []
    found = copied(files, 64, tmp_path / "copies", lambda *numbers: told.append(numbers), workers=2)
    assert len(found) == 5 and found.files == tuple(files) and not found.skipped
    assert told == [(number, 5) for number in range(1, 6)]
    assert found.bytes == sum(path.stat().st_size for path in (tmp_path / "copies").glob("*.jpegs"))
    for index, file in enumerate(files):
        theirs = np.asarray(Image.open(file).convert("RGB")).astype(int)
        assert np.abs(np.asarray(found[index]).astype(int) - theirs).mean() < 4
    monkeypatch.setattr(pictures, "opened", lambda _file: pytest.fail("read again"))
    assert copied(files, 64, tmp_path / "copies").bytes == found.bytes


def test_large_pictures_are_made_smaller_and_small_ones_stay(tmp_path: Path) -> None:
    for name, size in (("large.png", (900, 300)), ("small.png", (20, 30))):
        Image.new("RGB", size, "red").save(tmp_path / name)
    found = copied([tmp_path / "large.png", tmp_path / "small.png"], 64, tmp_path / "copies")
    assert [found[index].size for index in (0, 1)] == [(288, 96), (20, 30)]


def test_another_file_of_the_same_name_is_copied_anew(files: list[Path], tmp_path: Path) -> None:
    before = copied(files, 64, tmp_path / "copies")
    Image.new("RGB", (33, 44), "blue").save(files[2])
    after = copied(files, 64, tmp_path / "copies")
    assert before[2].size == (40, 40) and after[2].size == (33, 44)


def test_a_corrupt_picture_is_skipped_and_listed(files: list[Path], tmp_path: Path) -> None:
    files[0].write_bytes(files[0].read_bytes()[:100])
    for _ in range(2):  # made, and read back
        found = copied(files, 64, tmp_path / "copies")
        assert found.files == tuple(files[1:]) and len(found.skipped) == 1
        assert f"{files[0]} is not a readable picture" in found.skipped[0]
        assert np.asarray(found[0]).shape == (40, 40, 3)


def test_a_picture_that_may_be_read_at_last_is_copied(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, access = Path.open, os.access  # replaced, not refused: an administrator may read everything

    def refused(path: Path, *arguments: Any, **others: Any) -> Any:
        if path == files[0]:
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **others)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refused)
        patch.setattr(os, "access", lambda path, mode: path != files[0] and access(path, mode))
        found = copied(files, 64, tmp_path / "copies")
        assert found.skipped == (f"{files[0]} may not be read: check its permissions",)
    assert copied(files, 64, tmp_path / "copies").files == tuple(files)


def test_nothing_readable_at_all(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("no picture")
    with pytest.raises(BadInput, match="none of the 1 pictures can be read"):
        copied([tmp_path / "a.png"], 64, tmp_path / "copies")


def test_a_full_disk_is_noticed_before_it_is_full(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(BadInput, match=r"copies of these pictures take about .* choose another folder"):
        copied(files, 64, tmp_path / "copies")
    assert not list((tmp_path / "copies").iterdir())
