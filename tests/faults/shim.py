"""The interface of shim.c, which is preloaded: what this process does to files is recorded, or made to fail."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "ALL",
    "NAME",
    "REMOVE",
    "WRITE",
    "Record",
    "acknowledge",
    "build",
    "failing",
    "is_loaded",
    "recording",
    "unwatched",
]

WRITE = 2
NAME = 8
REMOVE = 16
ALL = 31
"""Kinds of calls: those that write, make or rename, and remove files and folders, and all of shim.c."""

_HEADER = struct.Struct("<qIIc")


@dataclass(frozen=True)
class Record:
    """One call that changed or synced a file or folder.

    Attributes:
        kind: W write, T truncate, S sync, C create a file, D make a folder, U remove, R rename, L link; A stands for
            an acknowledgement.
        name: Path below the folder that is watched.
        offset: Where a write begins, or the size that is left by a truncation.
        data: What is written, or the new path of a rename or link.
    """

    kind: str
    name: str
    offset: int
    data: bytes


def build(folder: Path) -> Path:
    """Compile the library to be preloaded into a folder; return its file."""
    library = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    compiler = shutil.which("cc") or "cc"
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror"]
    subprocess.run([compiler, *options, "-o", library, source, "-ldl"], check=True)
    return library


def is_loaded() -> bool:
    """Whether the library was preloaded into this process."""
    return hasattr(_library(), "shim_record")


def _library() -> Any:
    return ctypes.CDLL(None)


@contextlib.contextmanager
def recording(folder: Path) -> Iterator[list[Record]]:
    """Record what the block does to files below a folder; the list is filled when the block ends."""
    records: list[Record] = []
    library = _library()
    with tempfile.TemporaryFile() as file:
        library.shim_record(os.fsencode(folder), file.fileno())
        try:
            yield records
        finally:
            library.shim_end()
        file.seek(0)
        records += _parse(file.read())


def _parse(journal: bytes) -> Iterator[Record]:
    start = 0
    while start < len(journal):
        offset, name, data, kind = _HEADER.unpack_from(journal, start)
        middle = start + _HEADER.size + name
        start = middle + data
        yield Record(kind.decode(), os.fsdecode(journal[middle - name : middle]), offset, journal[middle:start])


def acknowledge() -> None:
    """Record that the operation has acknowledged a step."""
    _library().shim_acknowledge()


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """Neither record nor refuse what the block does."""
    _library().shim_pause(1)
    try:
        yield
    finally:
        _library().shim_pause(0)


@contextlib.contextmanager
def failing(folder: Path, kinds: int, number: int, error: int, *, lasting: bool) -> Iterator[list[int]]:
    """Make call `number` (from 1) of these kinds fail inside the block; the list then tells how many have failed.

    Args:
        folder: Calls for files below it count.
        kinds: Kinds of calls that count.
        number: Number of the call.
        error: The error, such as `errno.EIO`.
        lasting: Whether all calls after it fail too.
    """
    failed: list[int] = []
    library = _library()
    library.shim_fail(os.fsencode(folder), kinds, number, error, int(lasting))
    try:
        yield failed
    finally:
        failed.append(library.shim_end())
