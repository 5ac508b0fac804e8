"""Tensor files of a learner: safetensors whose SHA-256 is recorded in the database.

A file that changes together with rows is first written as `.<name>.next`. The transaction that changes the rows
records the new hash, and afterwards the file is renamed. Whatever a crash interrupts, the recorded hash tells which
of the two files is the right one.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
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
    "Tensors",
    "current_file",
    "decoded",
    "encoded",
    "finish_next",
    "has_current",
    "read_current",
    "read_tensors",
    "replace_tensors",
    "tensors_hash",
    "write_folder",
    "write_next",
    "write_tensors",
]

Array = npt.NDArray[Any]
Tensors = Mapping[str, Array]


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
    return decoded(data, f"{path} is not a safetensors file: restore it from a copy of the learner")


def decoded(data: bytes, message: str) -> dict[str, Array]:
    """Return the tensors in the bytes of a safetensors file; raise `Damaged` with the message if they are not one."""
    try:
        return load(data)
    except SafetensorError as error:
        raise Damaged(message) from error


def write_next(folder: Path, name: str, tensors: Tensors) -> str:
    """Write the next version of a file under a temporary name; return its SHA-256, to be recorded in the database."""
    return write_tensors(folder / f".{name}.next", tensors)


def current_file(folder: Path, name: str, expected: str) -> Path:
    """Return where the version of a file is that has the recorded hash; a crash may have prevented its renaming."""
    next_version = folder / f".{name}.next"
    if next_version.exists() and _sha256(next_version) == expected:
        return next_version
    return folder / f"{name}.safetensors"


def read_current(folder: Path, name: str, expected: str) -> dict[str, Array]:
    """Read the version of a file that has the recorded hash."""
    return read_tensors(current_file(folder, name, expected), expected)


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
