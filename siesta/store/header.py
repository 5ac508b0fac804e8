"""The first page of `store.sqlite`: what does not depend on the learner is verified and can be rebuilt.

Offsets are those of "Database File Format" in SQLite's documentation. The 100 bytes of the header are followed by the
rows that describe the tables.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["APPLICATION", "HEADER_BYTES", "PAGE_BYTES", "connect", "rebuild", "root_pages"]

PAGE_BYTES = 16384
HEADER_BYTES = 100
APPLICATION = 0x51E57A  # reads like "SIESTA"

_FIXED: Sequence[tuple[int, bytes]] = (
    (0, b"SQLite format 3\0"),
    (16, PAGE_BYTES.to_bytes(2, "big")),
    (20, bytes([0, 64, 32, 32])),  # no reserved bytes in a page; fractions of a payload, which are constants
    (44, (4).to_bytes(4, "big")),  # format of the schema
    (48, bytes(8)),  # size of the cache, which is set for each connection; no auto-vacuum
    (56, (1).to_bytes(4, "big")),  # UTF-8
    (64, bytes(4)),  # no incremental vacuum
    (68, APPLICATION.to_bytes(4, "big")),
    (72, bytes(20)),  # reserved by SQLite
)
_JOURNAL = slice(18, 20)
_WAL = bytes([2, 2])
_ROLLBACK = bytes([1, 1])  # of a copy that `VACUUM INTO` made
_PAGES = slice(28, 32)
_CHANGES = slice(24, 28)
_PAGES_VALID_FOR = slice(92, 96)  # the changes at which the number of pages was written
_OUR_INDEX = b"samples_by_class"

# The write-ahead log: a header, then frames of a header and a page each. Frames with other salts are not part of it.
_LOG_HEADER_BYTES = 32
_FRAME_BYTES = 24
_SALTS_OF_LOG = slice(16, 24)
_SALTS_OF_FRAME = slice(8, 16)
_PAGE_NUMBER = slice(0, 4)
_FIRST_PAGE = (1).to_bytes(4, "big")
_PAGES_AFTER_COMMIT = slice(4, 8)  # zero in all frames of a transaction but the last


class _Connection(sqlite3.Connection):
    """A connection that is listed until it is closed."""

    file: tuple[int, int] | None = None

    def close(self) -> None:
        super().close()
        with _connecting:
            _connections.discard(self)


_connections: weakref.WeakSet[_Connection] = weakref.WeakSet()
_connecting = threading.Lock()


def connect(file: Path, address: str) -> sqlite3.Connection:
    """Connect to the database `file` by its `address`, a URI, after verifying its header.

    The header is not read while this process has another connection to the file: closing a file releases all locks
    that the process holds on it, and SQLite's are among them.

    Raises:
        sqlite3.DatabaseError: The header is damaged.
    """
    with _connecting:
        if _file_id(file) not in {connection.file for connection in _connections} and _is_damaged(file):
            raise sqlite3.DatabaseError("the header is damaged")
        connection = sqlite3.connect(address, uri=True, isolation_level=None, factory=_Connection)
        connection.file = _file_id(file)
        _connections.add(connection)
    return connection


def _file_id(file: Path) -> tuple[int, int] | None:
    """Return device and inode of a file; None if there is none."""
    try:
        facts = file.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def _is_damaged(file: Path) -> bool:
    """Whether `file` is the database of a learner with a damaged header; False if it is something else."""
    try:
        before = _state(file)
        with file.open("rb") as opened:
            page = opened.read(PAGE_BYTES)
        unchanged = before == _state(file)
    except OSError:  # SQLite says what is wrong
        return False
    if not page or not _is_ours(page):
        return False
    size, log_size, _ = before
    header = page[:HEADER_BYTES]
    right = _rebuilt(header, size // PAGE_BYTES)
    counted_elsewhere = header[_CHANGES] != header[_PAGES_VALID_FOR] or (log_size > 0 and _log_has_first_page(file))
    if counted_elsewhere or not unchanged:
        right = right[: _PAGES.start] + header[_PAGES] + right[_PAGES.stop :]  # SQLite takes it from elsewhere
    return header != right


def _state(file: Path) -> tuple[int, int, int]:
    """Return the size of the database, that of its log, and when the database was written."""
    log = Path(f"{file}-wal")
    log_size = log.stat().st_size if log.exists() else 0
    facts = file.stat()
    return facts.st_size, log_size, facts.st_mtime_ns


def _log_has_first_page(file: Path) -> bool:
    """Whether a transaction in the log of `file` has written its first page, with a number of pages of its own."""
    seen = False
    try:
        with Path(f"{file}-wal").open("rb") as log:
            salts = log.read(_LOG_HEADER_BYTES)[_SALTS_OF_LOG]
            while len(frame := log.read(_FRAME_BYTES)) == _FRAME_BYTES and frame[_SALTS_OF_FRAME] == salts:
                seen = seen or frame[_PAGE_NUMBER] == _FIRST_PAGE
                if seen and frame[_PAGES_AFTER_COMMIT] != bytes(4):
                    return True
                log.seek(PAGE_BYTES, os.SEEK_CUR)
    except FileNotFoundError:  # another process has written it into the database
        return True
    return False


def _is_ours(page: bytes) -> bool:
    """Whether a first page is that of a learner: by its application id, or by a name that only ours has."""
    return page[68:72] == APPLICATION.to_bytes(4, "big") or _OUR_INDEX in page


def _rebuilt(header: bytes, pages: int) -> bytes:
    """Return a header with everything in its place that is known of a database of so many pages."""
    right = bytearray(header)
    for place, value in _FIXED:
        right[place : place + len(value)] = value
    if header[_JOURNAL] not in (_WAL, _ROLLBACK):
        right[_JOURNAL] = _WAL
    right[_PAGES] = pages.to_bytes(4, "big")
    return bytes(right)


@contextmanager
def rebuild(file: Path) -> Iterator[bool]:
    """Rebuild the header of `file` in place if it is damaged, and yield whether it was; undone if the block raises."""
    if not _is_damaged(file):
        yield False
        return
    with file.open("r+b", buffering=0) as opened:
        old = os.pread(opened.fileno(), HEADER_BYTES, 0)
        _write(opened.fileno(), _rebuilt(old, file.stat().st_size // PAGE_BYTES))
        try:
            yield True
        except BaseException:
            _write(opened.fileno(), old)
            raise


def _write(handle: int, header: bytes) -> None:
    os.pwrite(handle, header, 0)
    os.fsync(handle)


def root_pages(page: bytes, tables: Sequence[tuple[str, str, str]]) -> dict[str, int]:
    """Return the root pages of tables and indices, by name, as the rows of a first page name them.

    The rows are found by their text, so that the page's own directory of them may be damaged.

    Args:
        page: The first page of a database.
        tables: Type, name and table of each.
    """
    roots = {}
    for kind, name, table in tables:
        text = re.escape(f"{kind}{name}{table}".encode())
        found = {int.from_bytes(root, "big") for root in re.findall(text + rb"(.{1,4}?)CREATE ", page, re.DOTALL)}
        if len(found) == 1:
            roots[name] = found.pop()
    return roots
