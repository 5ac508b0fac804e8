"""The files of a learner beside its database: tensors, written whole or not at all, and the writer's lock."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from siesta.errors import BadInput, Busy, Damaged, DiskRefused

__all__ = [
    "Lock",
    "disk_errors",
    "folder_bytes",
    "name_vouched",
    "read_tensors",
    "read_vouched",
    "replace_file",
    "replace_folder",
    "sha256",
    "sync_folder",
    "write_beside",
    "write_tensors",
]

Tensors = Mapping[str, Tensor]

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_NO_WRITING = (errno.EROFS, errno.EACCES, errno.EPERM)


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turns the operating system's refusals into a sentence about `path`."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            words = f"the disk of {path} is full: nothing was changed, free some room and try again"
            raise DiskRefused(words) from error
        if error.errno in _NO_WRITING:
            raise DiskRefused(f"{path} cannot be written to: check its permissions or choose another place") from error
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            raise BadInput(f"{path} exists already: choose another name or remove it first") from error
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise BadInput(f"the folder of {path} does not exist: make it first") from error
        raise BadInput(f"{path} could not be used ({error.strerror or error}): check the disk") from error


def write_tensors(path: Path, tensors: Tensors) -> str:
    """Writes a safetensors file, synced to disk; returns the SHA-256 of its bytes."""
    data = save({name: tensor.contiguous() for name, tensor in tensors.items()})
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return hashlib.sha256(data).hexdigest()


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all; what was there before stays until then."""
    new = path.with_name(f".{path.name}.new")  # hidden: a user's own files have no such names
    with disk_errors(path):
        try:
            with new.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_tensors(path: Path, expected: str) -> dict[str, Tensor]:
    """Reads what `write_tensors` wrote; anything else is named as damaged."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Damaged(f"{path} cannot be read ({error.strerror}): restore it from a copy of the learner") from error
    if hashlib.sha256(data).hexdigest() != expected:
        raise Damaged(f"{path} is damaged: restore it from a copy of the learner")
    try:
        return load(data)
    except SafetensorError as error:  # the hash fits, so we wrote it so
        raise Damaged(f"{path} is not a safetensors file: restore it from a copy of the learner") from error


def write_beside(folder: Path, name: str, tensors: Tensors) -> str:
    """Writes another version of a file beside it, to be vouched for and then named; returns its hash."""
    return write_tensors(folder / f".{name}.next", tensors)


def read_vouched(folder: Path, name: str, expected: str) -> dict[str, Tensor]:
    """A file of which a row has the hash; a crash may have kept it from getting its name."""
    beside = folder / f".{name}.next"
    if beside.exists() and sha256(beside) == expected:
        return read_tensors(beside, expected)
    return read_tensors(folder / f"{name}.safetensors", expected)


def name_vouched(folder: Path, hashes: Mapping[str, str]) -> None:
    """Gives versions beside that are vouched for their names, and removes the others."""
    found = list(folder.glob(".*.next"))
    for beside in found:
        name = beside.name.removeprefix(".").removesuffix(".next")
        if sha256(beside) == hashes.get(name):
            beside.replace(folder / f"{name}.safetensors")
        else:
            beside.unlink()
    if found:
        sync_folder(folder)


def replace_folder(path: Path, fill: Mapping[str, Tensors]) -> dict[str, str]:
    """Makes the folder `path` with one tensor file an entry, complete or not at all; returns their hashes."""
    partial = path.with_name(f".{path.name}.partial")
    for leftover in (partial, path):
        if leftover.exists():
            shutil.rmtree(leftover)
    path.parent.mkdir(exist_ok=True)
    try:
        partial.mkdir()
        hashes = {name: write_tensors(partial / f"{name}.safetensors", tensors) for name, tensors in fill.items()}
        partial.rename(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    sync_folder(path.parent)
    return hashes


def sync_folder(path: Path) -> None:
    """Makes renames inside a folder last."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def folder_bytes(path: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


class Lock:
    """A file that one process holds at a time; the kernel frees it when the process dies, however it dies."""

    def __init__(self, file: Path, busy: Callable[[str], str]) -> None:
        """Takes it, or says `busy` of the process that has it."""
        self._file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._file, 20, 0).decode("ascii", "replace").strip()
            os.close(self._file)
            raise Busy(busy(owner)) from None
        self._finish = weakref.finalize(self, _unlock, self._file)  # a forgotten learner frees its lock too
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode("ascii"), 0)

    def release(self) -> None:
        """Lets the next one in."""
        self._finish()


def _unlock(file: int) -> None:
    fcntl.flock(file, fcntl.LOCK_UN)  # closing is not enough while a forked child holds a copy
    os.close(file)
