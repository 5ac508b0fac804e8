"""Files on disk: atomic replacement, locks between processes, error messages, and the cache folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import hashlib
import os
import secrets
import shutil
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import platformdirs

from siesta.errors import BadInput, Busy, DiskRefused

__all__ = [
    "Lock",
    "cache_folder",
    "disk_errors",
    "folder_bytes",
    "is_full",
    "is_locked",
    "refuse_links",
    "replace_file",
    "replace_folder",
    "replacing",
    "sha256",
    "sync_folder",
    "write_file",
]

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)
_EXISTS = (errno.EEXIST, errno.ENOTEMPTY)
_NAME_LENGTH = 50  # characters of a file's name that its partial file carries; names are limited to 255 bytes
_POLL_SECONDS = 0.05
_PAGE = 4096  # bytes; a file grows by at least so many
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def cache_folder(name: str) -> Path:
    """Return the folder `name` in the user's cache for siesta, such as `~/.cache/siesta/<name>`; it may not exist."""
    return platformdirs.user_cache_path("siesta", appauthor=False) / name


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn an `OSError` of the block into a `SiestaError` with a message about `path`.

    Raises:
        DiskRefused: The disk is full, cannot be written to, or has failed.
        BadInput: The path itself cannot be used.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            message = f"the disk of {path} is full: the last change was not made, free disk space and try again"
            raise DiskRefused(message) from error
        if error.errno in _NOT_WRITABLE:
            raise DiskRefused(f"{path} cannot be written to: check its permissions or choose another place") from error
        if error.errno in _EXISTS:
            raise BadInput(f"{path} exists already: choose another name or remove it first") from error
        if error.errno == errno.ELOOP:
            raise _linked(Path(error.filename or path)) from error
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise BadInput(f"the folder of {path} does not exist: create it first") from error
        failure = DiskRefused if error.errno == errno.EIO else BadInput
        raise failure(f"{path} could not be used ({error.strerror or error}): check the disk") from error


def is_full(folder: Path) -> bool:
    """Whether the disk of a folder, which may not exist yet, has no room; the error of a library may not say so."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        free = os.statvfs(folder)
    except OSError:
        return False
    return free.f_bavail * free.f_frsize < _PAGE


def refuse_links(folder: Path) -> None:
    """Raise `BadInput` if a file or folder below `folder` is a symbolic link.

    Writing to a folder that another user has made must not change files elsewhere. The folder itself may be a link.
    """
    with disk_errors(folder):
        for place, folders, files in os.walk(folder):
            for name in (*folders, *files):
                if Path(place, name).is_symlink():
                    raise _linked(Path(place, name))


def _linked(path: Path) -> BadInput:
    return BadInput(f"{path} is a symbolic link, which is not followed: replace it by what it points to")


def write_file(path: Path, content: bytes) -> None:
    """Write a file and sync it to disk; after a crash it may be incomplete, so write where nothing is read yet."""
    with os.fdopen(os.open(path, _NEW_FILE, 0o666), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def replacing(path: Path, *, mode: int = 0o666, sync: bool = True) -> Iterator[BinaryIO]:
    """Yield a file to write; when the block ends it becomes `path` atomically, and when it raises, nothing changes.

    It is a hidden partial file with a unique name. Partial files of `path` that a killed process left behind are
    removed.

    Args:
        path: The file to create or to replace.
        mode: Permissions, before the umask.
        sync: Sync file and folder to disk, so that the new content survives a loss of power.
    """
    with disk_errors(path):
        _remove_leftovers(path)
        partial, handle = _new_partial_file(path, mode)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                if sync:
                    os.fsync(file.fileno())
                partial.replace(path)  # while it is still locked: it is no leftover
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        if sync:
            sync_folder(path.parent)


def replace_file(path: Path, content: bytes | str, *, mode: int = 0o666, sync: bool = True) -> None:
    """Write a file atomically: readers see the old content or the new one, never a part of it; see `replacing`.

    Args:
        path: The file to create or to replace.
        content: Its new content; text is encoded as UTF-8.
        mode: Permissions, before the umask.
        sync: Sync file and folder to disk.
    """
    with replacing(path, mode=mode, sync=sync) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def replace_folder(path: Path) -> Iterator[Path]:
    """Fill the folder that is yielded; when the block ends it is renamed to `path`, in place of what was there.

    Only one process at a time may replace a folder. When the block raises, what was at `path` stays.
    """
    partial, previous = (path.with_name(f".{path.name}.{name}") for name in ("partial", "previous"))
    for leftover in (partial, previous):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        yield partial
        if path.exists():
            path.rename(previous)
        partial.rename(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    shutil.rmtree(previous, ignore_errors=True)
    sync_folder(path.parent)


def _partial_name(path: Path, token: str) -> str:
    return f".{path.name[:_NAME_LENGTH]}.{token}.partial"


def _new_partial_file(path: Path, mode: int) -> tuple[Path, int]:
    """Make a file beside `path` that is locked while this process writes it."""
    while True:
        partial = path.with_name(_partial_name(path, secrets.token_hex(4)))
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return partial, handle
        os.close(handle)  # another process took it for a leftover before it was locked


def _remove_leftovers(path: Path) -> None:
    """Remove the partial files of `path` that no living process writes."""
    name = glob.escape(path.name[:_NAME_LENGTH])
    for partial in [*path.parent.glob(f".{name}.partial"), *path.parent.glob(f".{name}.*.partial")]:
        with contextlib.suppress(OSError):
            handle = os.open(partial, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                partial.unlink()
            finally:
                os.close(handle)


def sync_folder(path: Path) -> None:
    """Sync a folder to disk, so that files that were made, renamed or removed in it stay so after a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def folder_bytes(path: Path) -> int:
    """Return the total size of all files in a folder and below."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


class Lock:
    """A lock file that one process holds at a time; the kernel frees it when the process ends, even if it is killed.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     lock = Lock(Path(folder, "lock"), lambda pid: f"process {pid} holds the lock")
        ...     held = is_locked(Path(folder, "lock"))
        ...     lock.release()
        ...     held, is_locked(Path(folder, "lock"))
        (True, False)
    """

    def __init__(self, file: Path, busy: Callable[[str], str], timeout: float = 0.0) -> None:
        """Take the lock.

        Args:
            file: The lock file; it is made if it does not exist.
            busy: Makes the message of `Busy` from the id of the process that holds the lock.
            timeout: Seconds to wait for another process to release it.

        Raises:
            Busy: Another process still holds it.
        """
        end = time.monotonic() + timeout
        while (handle := _locked_handle(file)) is None:
            if time.monotonic() >= end:
                raise Busy(busy(_owner(file)))
            time.sleep(_POLL_SECONDS)
        self._finish = weakref.finalize(self, _unlock, handle)  # also when its owner forgets to release it
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode("ascii"), 0)
        except BaseException:
            self._finish()
            raise

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        self._finish()


def is_locked(file: Path) -> bool:
    """Whether a process, this one included, holds the lock `file`."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _locked_handle(file: Path) -> int | None:
    """Open and lock `file`; None while another process has it."""
    while True:
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        if os.fstat(handle).st_nlink:
            return handle
        os.close(handle)  # its last owner removed it after it was opened here


def _owner(file: Path) -> str:
    try:
        return file.read_bytes()[:20].decode("ascii", "replace").strip()
    except OSError:
        return ""


def _unlock(handle: int) -> None:
    fcntl.flock(handle, fcntl.LOCK_UN)  # closing is not enough while a forked child has a copy of the handle
    os.close(handle)
