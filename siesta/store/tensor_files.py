"""Tensor files of a learner: safetensors whose SHA-256 is recorded in the database.

A file that changes together with rows is first written as `.<name>.next`. The transaction that changes the rows
records the new hash, and afterwards the file is renamed. Whatever a crash interrupts, the recorded hash tells which
of the two files is the right one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from siesta.errors import Damaged, DiskRefused
from siesta.files import replace_file, replace_folder, sha256, sync_folder, write_file

__all__ = [
    "Array",
    "StoredTensors",
    "Tensors",
    "current_file",
    "decoded",
    "encoded",
    "finish_next",
    "has_current",
    "read_tensors",
    "replace_tensors",
    "tensors_hash",
    "write_folder",
    "write_next",
    "write_tensors",
]

Array = npt.NDArray[Any]
Tensors = Mapping[str, Array]

_LENGTH_BYTES = 8  # at the beginning of a safetensors file, of the JSON that follows
_TYPES = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "I32": np.int32,
    "I64": np.int64,
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
}


class StoredTensors(Mapping[str, Array]):
    """The tensors of a file, which are in memory until `release`, and read and verified again where they are needed."""

    def __init__(self, folder: Path, name: str, expected: str) -> None:
        """Read the version of a file that has the recorded hash; a crash may have prevented its renaming.

        Args:
            folder: The folder of the file.
            name: Its name without a suffix.
            expected: Its SHA-256.
        """
        self._file = folder, name, expected
        self._read: dict[str, Array] | None = self._tensors()

    def _tensors(self) -> dict[str, Array]:
        folder, name, expected = self._file
        return read_tensors(current_file(folder, name, expected), expected)

    def release(self) -> None:
        """Free their memory, if nothing else uses them."""
        self._read = None

    def __getitem__(self, name: str) -> Array:
        if self._read is None:
            self._read = self._tensors()
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        if self._read is None:
            self._read = self._tensors()
        return iter(self._read)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def write_tensors(path: Path, tensors: Tensors) -> str:
    """Write a new safetensors file, synced to disk; return the SHA-256 of its bytes."""
    data = encoded(tensors)
    write_file(path, data)
    return hashlib.sha256(data).hexdigest()


def replace_tensors(path: Path, tensors: Tensors) -> str:
    """Replace a safetensors file atomically; return the SHA-256 of its bytes."""
    data = encoded(tensors)
    replace_file(path, data)
    return hashlib.sha256(data).hexdigest()


def tensors_hash(tensors: Tensors) -> str:
    """Return the SHA-256 of the file that these tensors make."""
    return hashlib.sha256(encoded(tensors)).hexdigest()


def encoded(tensors: Tensors) -> bytes:
    """Return the bytes of the safetensors file that these tensors make."""
    return save({name: np.asarray(tensor, order="C") for name, tensor in tensors.items()})


def read_tensors(path: Path, expected: str) -> dict[str, Array]:
    """Read a safetensors file whose SHA-256 must be `expected`.

    Raises:
        Damaged: The file is missing, or has other bytes.
        DiskRefused: The disk did not deliver its bytes.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise Damaged(f"{path} is missing: restore it from a copy of the learner") from error
    except OSError as error:
        raise _unreadable(path, error) from error
    if hashlib.sha256(data).hexdigest() != expected:
        raise Damaged(f"{path} is damaged: restore it from a copy of the learner")
    try:
        return _views(data)
    except (KeyError, TypeError, ValueError) as error:  # the hash is right, so it was written like this
        raise Damaged(f"{path} is not a safetensors file: restore it from a copy of the learner") from error


def decoded(data: bytes, message: str) -> dict[str, Array]:
    """Return the tensors in the bytes of a safetensors file; raise `Damaged` with the message if they are not one."""
    try:
        return load(data)
    except SafetensorError as error:
        raise Damaged(message) from error


def _views(data: bytes) -> dict[str, Array]:
    """Return the tensors of a trusted safetensors file as read-only views of its bytes; safetensors copies each."""
    start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    header: dict[str, Any] = json.loads(data[_LENGTH_BYTES:start])
    header.pop("__metadata__", None)
    return {name: _view(data, start, **tensor) for name, tensor in header.items()}


def _view(data: bytes, start: int, dtype: str, shape: list[int], data_offsets: list[int]) -> Array:
    kind = np.dtype(_TYPES[dtype]).newbyteorder("<")
    return np.frombuffer(data, kind, math.prod(shape), start + data_offsets[0]).reshape(shape)


def write_next(folder: Path, name: str, tensors: Tensors) -> str:
    """Write the next version of a file under a temporary name; return its SHA-256, to be recorded in the database."""
    return write_tensors(folder / f".{name}.next", tensors)


def current_file(folder: Path, name: str, expected: str) -> Path:
    """Return where the version of a file is that has the recorded hash; a crash may have prevented its renaming."""
    next_version = folder / f".{name}.next"
    if next_version.exists() and _sha256(next_version) == expected:
        return next_version
    return folder / f"{name}.safetensors"


def has_current(folder: Path, name: str, expected: object) -> bool:
    """Whether a version of a file has the recorded hash.

    Raises:
        DiskRefused: The disk did not deliver the bytes of one, which may be whole.
    """
    for version in (folder / f"{name}.safetensors", folder / f".{name}.next"):
        with contextlib.suppress(FileNotFoundError):
            if _sha256(version) == expected:
                return True
    return False


def _sha256(file: Path) -> str:
    try:
        return sha256(file)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: OSError) -> DiskRefused:
    return DiskRefused(f"{file} cannot be read ({error.strerror}): check its disk and try again")


def finish_next(folder: Path, hashes: Mapping[str, str]) -> None:
    """Rename next versions whose hash is recorded, and remove the others."""
    found = list(folder.glob(".*.next"))
    for next_version in found:
        name = next_version.name.removeprefix(".").removesuffix(".next")
        if sha256(next_version) == hashes.get(name):
            next_version.replace(folder / f"{name}.safetensors")
        else:
            next_version.unlink()
    if found:
        sync_folder(folder)


def write_folder(path: Path, contents: Mapping[str, Tensors]) -> dict[str, str]:
    """Make the folder `path` with one tensor file per entry, atomically; return the hashes of the files."""
    with replace_folder(path) as partial:
        return {name: write_tensors(partial / f"{name}.safetensors", tensors) for name, tensors in contents.items()}
