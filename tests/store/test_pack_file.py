"""The container of packs: whole or refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from siesta.errors import BadInput, Damaged, DiskRefused
from siesta.store.pack_file import PackFile, write_pack_file

PARTS = {"top": b"weights" * 1000, "head": b"", "sums": b"numbers"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "top").write_bytes(PARTS["top"])
    write_pack_file(tmp_path / "file", "slept", {"id": "é"}, {**PARTS, "top": tmp_path / "top"})
    return tmp_path / "file"


def with_header(file: Path, header: dict[str, Any], parts: bytes = b"") -> Path:
    """Write a file whose hashes are right, whatever its header says."""
    data = json.dumps(header).encode()
    file.write_bytes(b"SIESTApk" + len(data).to_bytes(4, "little") + hashlib.sha256(data).digest() + data + parts)
    return file


def test_parts_come_back_from_bytes_and_files(file: Path, tmp_path: Path) -> None:
    found = PackFile.open(file)
    assert (found.kind, found.facts) == ("slept", {"id": "é"})
    assert {name: found.read(name) for name in found.parts} == PARTS
    found.extract("top", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == PARTS["top"]
    assert file.stat().st_mode & 0o777 == 0o600


def test_every_flipped_byte_and_every_shorter_file_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "small"
    write_pack_file(file, "pack", {"id": "1"}, {"top": b"ab", "head": b"c"})
    whole = file.read_bytes()

    def read() -> None:
        found = PackFile.open(file)
        for name in found.parts:
            found.read(name)

    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 4
        for damaged in (changed, whole[:place]):
            file.write_bytes(damaged)
            with pytest.raises((Damaged, BadInput), match=r"is damaged or not complete|is not a pack"):
                read()
    file.write_bytes(whole)
    read()


@pytest.mark.parametrize(
    "parts",
    [
        [{"name": "../../top", "bytes": 0, "sha256": ""}],
        [{"name": "top", "bytes": -1, "sha256": ""}],
        [{"name": "top", "bytes": 10**15, "sha256": ""}],
        [{"name": "top", "bytes": "1", "sha256": ""}],
        [{"name": "top", "bytes": 0, "sha256": ""}] * 2,
        [{"name": "top"}],
        "top",
        None,
    ],
)
def test_a_header_that_we_would_not_write_is_refused(parts: object, tmp_path: Path) -> None:
    with pytest.raises(Damaged, match="is damaged or not complete"):
        PackFile.open(with_header(tmp_path / "file", {"kind": "pack", "facts": {}, "parts": parts}))


def test_a_header_is_limited_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"SIESTApk" + b"\xff" * 4 + bytes(32))
    with pytest.raises(Damaged):
        PackFile.open(tmp_path / "file")


def test_a_disk_that_refuses_leaves_the_old_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = file.read_bytes()

    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(DiskRefused, match="is full"):
        write_pack_file(file, "pack", {}, PARTS)
    assert file.read_bytes() == before
    assert [found.name for found in file.parent.iterdir() if found.name.startswith(".")] == []
