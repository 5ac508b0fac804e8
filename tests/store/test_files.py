"""Tensor files, whole or not at all, and the writer's lock."""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path

import pytest
import torch

from siesta.errors import BadInput, Busy, Damaged
from siesta.store import files

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1, 2], dtype=torch.int64)}


def test_tensors_come_back_as_they_were(tmp_path: Path) -> None:
    sha256 = files.write_tensors(tmp_path / "x", TENSORS)
    assert sha256 == hashlib.sha256((tmp_path / "x").read_bytes()).hexdigest()
    back = files.read_tensors(tmp_path / "x", sha256)
    assert back.keys() == TENSORS.keys()
    assert all(torch.equal(back[name], TENSORS[name]) and back[name].dtype == TENSORS[name].dtype for name in TENSORS)


def test_a_tensor_in_another_memory_order_keeps_its_values(tmp_path: Path) -> None:
    turned = torch.rand(1, 3, 4, 5).to(memory_format=torch.channels_last)
    sha256 = files.write_tensors(tmp_path / "x", {"t": turned})
    assert torch.equal(files.read_tensors(tmp_path / "x", sha256)["t"], turned)


@pytest.mark.parametrize("data", [b"", b"garbage", None])
def test_a_damaged_file_is_named(tmp_path: Path, data: bytes | None) -> None:
    file = tmp_path / "top.safetensors"
    sha256 = files.write_tensors(file, TENSORS)
    file.write_bytes(file.read_bytes()[:-1] if data is None else data)
    with pytest.raises(Damaged, match=r"top\.safetensors"):
        files.read_tensors(file, sha256)


def test_garbage_with_a_fitting_hash_is_damaged_too(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"garbage")
    with pytest.raises(Damaged, match="x"):
        files.read_tensors(tmp_path / "x", hashlib.sha256(b"garbage").hexdigest())


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Damaged, match=r"gone\.safetensors"):
        files.read_tensors(tmp_path / "gone.safetensors", "")


def test_a_folder_replaces_what_a_crash_left(tmp_path: Path) -> None:
    for name in ("weights", ".weights.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "old").write_text("old")
    hashes = files.replace_folder(tmp_path / "weights", {"top": TENSORS})
    assert [file.name for file in tmp_path.iterdir()] == ["weights"]
    assert [file.name for file in (tmp_path / "weights").iterdir()] == ["top.safetensors"]
    assert files.read_tensors(tmp_path / "weights" / "top.safetensors", hashes["top"]).keys() == TENSORS.keys()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "full"),
        (errno.EDQUOT, "full"),
        (errno.EROFS, "cannot be written"),
        (errno.EACCES, "cannot be written"),
        (errno.ENOENT, "does not exist"),
        (errno.EIO, "check the disk"),
    ],
)
def test_the_disk_s_refusals_are_sentences_about_the_path(number: int, words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught, files.disk_errors(Path("/some/where")):
        raise OSError(number, "words")
    assert "/some/where" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    first = files.Lock(tmp_path / "lock", lambda pid: f"taken by process {pid}")
    with pytest.raises(Busy):
        files.Lock(tmp_path / "lock", lambda pid: f"taken by process {pid}")
    first.release()
    files.Lock(tmp_path / "lock", lambda pid: f"taken by process {pid}").release()


def test_folder_bytes_counts_files_at_every_depth(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"123")
    (tmp_path / "y").write_bytes(b"4567")
    assert files.folder_bytes(tmp_path) == 7
