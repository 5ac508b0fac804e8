"""Tensor files of a learner and their next versions."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from siesta.errors import Damaged, DiskRefused
from siesta.store import tensor_files

TENSORS = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([1, 2], dtype=np.int64)}


def test_tensors_come_back_as_they_were(tmp_path: Path) -> None:
    sha256 = tensor_files.write_tensors(tmp_path / "x", TENSORS)
    assert sha256 == hashlib.sha256((tmp_path / "x").read_bytes()).hexdigest()
    back = tensor_files.read_tensors(tmp_path / "x", sha256)
    assert back.keys() == TENSORS.keys()
    assert all(
        np.array_equal(back[name], TENSORS[name]) and back[name].dtype == TENSORS[name].dtype for name in TENSORS
    )


def test_a_tensor_in_another_memory_order_keeps_its_values(tmp_path: Path) -> None:
    turned = np.random.default_rng(0).random((1, 4, 5, 3)).transpose(0, 3, 1, 2)
    sha256 = tensor_files.write_tensors(tmp_path / "x", {"t": turned})
    assert np.array_equal(tensor_files.read_tensors(tmp_path / "x", sha256)["t"], turned)


@pytest.mark.parametrize("data", [b"", b"garbage", None])
def test_a_damaged_file_is_named(tmp_path: Path, data: bytes | None) -> None:
    file = tmp_path / "top.safetensors"
    sha256 = tensor_files.write_tensors(file, TENSORS)
    file.write_bytes(file.read_bytes()[:-1] if data is None else data)
    with pytest.raises(Damaged, match=r"top\.safetensors"):
        tensor_files.read_tensors(file, sha256)


def test_garbage_with_a_fitting_hash_is_damaged_too(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"garbage")
    with pytest.raises(Damaged, match="x"):
        tensor_files.read_tensors(tmp_path / "x", hashlib.sha256(b"garbage").hexdigest())


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Damaged, match=r"gone\.safetensors"):
        tensor_files.read_tensors(tmp_path / "gone.safetensors", "")


def test_a_file_that_the_disk_does_not_deliver_is_not_called_damaged(tmp_path: Path) -> None:
    file = tmp_path / "x.safetensors"
    file.mkdir()  # reading it fails, as on a failing disk
    with pytest.raises(DiskRefused, match=r"x.safetensors cannot be read \(Is a directory\)"):
        tensor_files.read_tensors(file, "")
    with pytest.raises(DiskRefused, match=r"x.safetensors cannot be read .*: check its disk"):
        tensor_files.has_current(tmp_path, "x", "")
    (tmp_path / ".y.next").mkdir()
    with pytest.raises(DiskRefused, match=r"\.y\.next cannot be read .*: check its disk"):
        tensor_files.StoredTensors(tmp_path, "y", "")


def test_each_version_is_current_whose_hash_is_recorded(tmp_path: Path) -> None:
    old = tensor_files.write_tensors(tmp_path / "top.safetensors", TENSORS)
    new = tensor_files.write_next(tmp_path, "top", {"a": np.zeros(2)})
    assert tensor_files.has_current(tmp_path, "top", old)
    assert tensor_files.has_current(tmp_path, "top", new)
    assert not tensor_files.has_current(tmp_path, "top", "other")
    tensor_files.finish_next(tmp_path, {"top": new})
    assert not tensor_files.has_current(tmp_path, "top", old)


def test_a_folder_replaces_what_a_crash_left(tmp_path: Path) -> None:
    for name in ("weights", ".weights.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "old").write_text("old")
    hashes = tensor_files.write_folder(tmp_path / "weights", {"top": TENSORS})
    assert [file.name for file in tmp_path.iterdir()] == ["weights"]
    assert [file.name for file in (tmp_path / "weights").iterdir()] == ["top.safetensors"]
    assert tensor_files.read_tensors(tmp_path / "weights" / "top.safetensors", hashes["top"]).keys() == TENSORS.keys()


def test_a_next_version_is_read_once_its_hash_is_recorded(tmp_path: Path) -> None:
    old = tensor_files.write_tensors(tmp_path / "codec.safetensors", TENSORS)
    new = tensor_files.write_next(tmp_path, "codec", {"a": TENSORS["b"]})
    assert tensor_files.StoredTensors(tmp_path, "codec", old).keys() == {"a", "b"}
    assert tensor_files.StoredTensors(tmp_path, "codec", new).keys() == {"a"}


@pytest.mark.parametrize("recorded", ["old", "new"])
def test_next_versions_are_renamed_or_removed(tmp_path: Path, recorded: str) -> None:
    hashes = {"old": tensor_files.write_tensors(tmp_path / "codec.safetensors", TENSORS)}
    hashes["new"] = tensor_files.write_next(tmp_path, "codec", {"a": TENSORS["b"]})
    tensor_files.finish_next(tmp_path, {"codec": hashes[recorded]})
    assert [file.name for file in tmp_path.iterdir()] == ["codec.safetensors"]
    tensor_files.read_tensors(tmp_path / "codec.safetensors", hashes[recorded])


def test_released_tensors_are_read_and_verified_again(tmp_path: Path) -> None:
    file = tmp_path / "top.safetensors"
    stored = tensor_files.StoredTensors(tmp_path, "top", tensor_files.write_tensors(file, TENSORS))
    data = file.read_bytes()
    file.unlink()
    assert set(stored) == {"a", "b"}, "they are in memory until they are released"
    stored.release()
    with pytest.raises(Damaged, match="is missing"):
        len(stored)
    file.write_bytes(data)
    np.testing.assert_array_equal(stored["a"], TENSORS["a"])
    stored.release()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(Damaged, match="is damaged"):
        stored["a"]
