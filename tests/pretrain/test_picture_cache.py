"""Copies of pictures are made once, are small, and are checked when they are read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from siesta.errors import BadInput, Damaged
from siesta.pretrain import picture_cache
from siesta.pretrain.picture_cache import cache_pictures


@pytest.fixture
def files(textures: Path) -> list[Path]:
    return sorted(textures.rglob("*.png"))[:5]


def test_copies_look_like_their_pictures_and_are_made_once(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[int, int]] = []
    found = cache_pictures(files, 64, tmp_path / "copies", lambda *numbers: calls.append(numbers), workers=2)
    assert len(found) == 5 and found.files == tuple(files) and not found.skipped
    assert calls == [(number, 5) for number in range(1, 6)]
    assert found.bytes == sum(path.stat().st_size for path in (tmp_path / "copies").glob("*.jpegs"))
    for index, file in enumerate(files):
        theirs = np.asarray(Image.open(file).convert("RGB")).astype(int)
        assert np.abs(np.asarray(found[index]).astype(int) - theirs).mean() < 4
    monkeypatch.setattr(picture_cache, "decode_file", lambda *_arguments: pytest.fail("it was read again"))
    assert cache_pictures(files, 64, tmp_path / "copies").bytes == found.bytes


def test_large_pictures_are_made_smaller_and_small_ones_stay(tmp_path: Path) -> None:
    for name, size in (("large.png", (900, 300)), ("small.png", (20, 30))):
        Image.new("RGB", size, "red").save(tmp_path / name)
    found = cache_pictures([tmp_path / "large.png", tmp_path / "small.png"], 64, tmp_path / "copies")
    assert [found[index].size for index in (0, 1)] == [(288, 96), (20, 30)]


def test_a_changed_file_is_copied_again(files: list[Path], tmp_path: Path) -> None:
    before = cache_pictures(files, 64, tmp_path / "copies")
    Image.new("RGB", (33, 44), "blue").save(files[2])
    after = cache_pictures(files, 64, tmp_path / "copies")
    assert before[2].size == (40, 40) and after[2].size == (33, 44)


def test_a_damaged_picture_is_skipped_with_its_error(files: list[Path], tmp_path: Path) -> None:
    files[0].write_bytes(files[0].read_bytes()[:100])
    for _ in range(2):  # made, and read back
        found = cache_pictures(files, 64, tmp_path / "copies")
        assert found.files == tuple(files[1:]) and len(found.skipped) == 1
        assert f"{files[0]} is not a readable image" in found.skipped[0]
        assert np.asarray(found[0]).shape == (40, 40, 3)


def test_a_picture_is_copied_once_its_permissions_allow_it(
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
        found = cache_pictures(files, 64, tmp_path / "copies")
        assert found.skipped == (f"{files[0]} cannot be read (permission denied): change its permissions",)
    assert cache_pictures(files, 64, tmp_path / "copies").files == tuple(files)


def test_a_folder_without_a_readable_picture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("no picture")
    with pytest.raises(BadInput, match="none of the 1 images can be read"):
        cache_pictures([tmp_path / "a.png"], 64, tmp_path / "copies")


def test_too_little_disk_space_is_reported_before_the_disk_is_full(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=1))
    with pytest.raises(BadInput, match=r"copies of these images take about .* choose another folder"):
        cache_pictures(files, 64, tmp_path / "copies")
    assert not list((tmp_path / "copies").iterdir())


def test_damaged_copies_are_made_again(files: list[Path], tmp_path: Path) -> None:
    cache_pictures(files, 32, tmp_path / "copies")
    (index,), (content,) = (list((tmp_path / "copies").glob(f"*.{ending}")) for ending in ("json", "jpegs"))
    whole = content.read_bytes()
    for file, damage in ((index, b"{"), (index, b"[]"), (content, whole[:-1]), (content, b"")):
        file.write_bytes(damage)
        assert len(cache_pictures(files, 32, tmp_path / "copies")) == len(files)
        assert content.read_bytes() == whole


def test_damage_that_shows_only_in_a_picture_is_named(files: list[Path], tmp_path: Path) -> None:
    cache_pictures(files, 32, tmp_path / "copies")
    (content,) = (tmp_path / "copies").glob("*.jpegs")
    content.write_bytes(bytes(content.stat().st_size))
    with pytest.raises(Damaged, match=r"copies of images in .*\.jpegs are damaged: remove it"):
        _ = cache_pictures(files, 32, tmp_path / "copies")[0]
