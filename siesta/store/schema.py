"""The tables of `store.sqlite`: their creation and checksums, and connections to them."""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import quote

from siesta.errors import BadInput, Damaged, DiskRefused
from siesta.files import is_full, refuse_links
from siesta.store import header
from siesta.store.tables import TABLES

__all__ = [
    "DATABASE",
    "FORMAT",
    "FORMAT_SETTING",
    "Transaction",
    "UnsyncedCommit",
    "connect",
    "create_tables",
    "database_errors",
    "format_of_tables",
    "has_current_columns",
    "header_version",
    "refuse_others",
    "restored_page",
    "row_checksum",
]

DATABASE = "store.sqlite"
FORMAT = 5
"""Version of a learner's files; increased when older code would misread them."""

FORMAT_SETTING = "format"
"""Name of the setting that repeats the format, because one flipped bit of the header would change it."""

_REMEDY = "`siesta check` names the damage, `siesta repair` keeps what can be read of it"

_CHECK = "CHECK (id = 0)"  # of tables with one row

_NEWEST_TABLE = "rejected"


def connect(file: Path | None, read_only: bool, synchronous: str) -> sqlite3.Connection:
    """Connect to the database of a learner, whatever its format.

    Args:
        file: The database file; None for a database in memory.
        read_only: Whether the connection only reads.
        synchronous: SQLite's `synchronous`: with "NORMAL" commits survive the end of the process, with "FULL" also a
            loss of power.

    Raises:
        BadInput: A file in the learner's folder is a symbolic link.
    """
    if file is None:
        return _configured(sqlite3.connect(":memory:", isolation_level=None), synchronous)
    refuse_links(file.parent)
    address = f"file:{quote(os.fsencode(file.resolve()))}"
    if not read_only:
        return _configured(header.connect(file, f"{address}?mode=rwc"), synchronous)
    try:
        return _configured(header.connect(file, f"{address}?mode=ro"), synchronous)
    except sqlite3.OperationalError:
        # a read-only or full disk has no room for the shared memory of a WAL; without a WAL none is needed
        wal = file.with_name(f"{file.name}-wal")
        if wal.exists() and wal.stat().st_size:
            raise
        return _configured(header.connect(file, f"{address}?immutable=1"), synchronous)


def _configured(connection: sqlite3.Connection, synchronous: str) -> sqlite3.Connection:
    try:
        # large pages waste little space on codes of 1.5 KB
        connection.execute(f"PRAGMA page_size = {header.PAGE_BYTES}")
        connection.execute("PRAGMA cache_size = -32768")  # KiB
        connection.execute("PRAGMA busy_timeout = 10000")
        connection.execute("PRAGMA secure_delete = ON")  # overwrites deleted rows
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    except UnicodeDecodeError as error:  # SQLite quotes damaged text in its message
        connection.close()
        raise sqlite3.DatabaseError("malformed database schema") from error
    return connection


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables in an empty database."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(TABLES)
    connection.execute(f"PRAGMA application_id = {header.APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def refuse_others(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a database that is not the one of a learner, or of a format that is not known here.

    Raises:
        BadInput: It is not the database of a learner.
        Damaged: Its format is newer than this code: both the header and the settings say so.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != header.APPLICATION and not has_current_columns(connection):
        raise BadInput(f"{path} is not a siesta learner: create one with `siesta new`")
    version = header_version(connection)
    if version > FORMAT and version == _version_in_settings(connection):
        raise Damaged(f"{path} has format {version} and this siesta reads up to {FORMAT}: upgrade siesta-learn")


def header_version(connection: sqlite3.Connection) -> int:
    """Return the format that the header says, which may be damaged."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _version_in_settings(connection: sqlite3.Connection) -> int | None:
    with contextlib.suppress(sqlite3.DatabaseError, ValueError, TypeError):
        (text,) = connection.execute("SELECT value FROM settings WHERE name = ?", (FORMAT_SETTING,)).fetchone()
        return int(text)
    return None


def format_of_tables(connection: sqlite3.Connection) -> int | None:
    """Return the format that the tables have; None if they are damaged.

    An older format counts only if the header says the same.
    """
    if has_current_columns(connection):
        return FORMAT
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    newest = {4: "gram", 3: "thumbnails", 2: "in_use"}  # a table that formats below this one do not have
    likely = next((number for number, table in newest.items() if table in names), 1)
    return likely if "rejected" not in names and likely == header_version(connection) else None


def has_current_columns(connection: sqlite3.Connection, type_pattern: str = "%") -> bool:
    """Whether tables and indices whose type matches an SQL pattern are described as `create_tables` makes them."""
    roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_master").fetchall())
    return _columns(connection, type_pattern) == _current_columns(type_pattern) and _likely_layout(roots, 1) in (
        None,
        roots,
    )


@functools.cache
def _current_columns(type_pattern: str) -> list[tuple[str, ...]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(TABLES)
        return _columns(fresh, type_pattern)


@functools.cache
def _layouts() -> list[dict[str, int]]:
    """Return the root pages of tables and indices, by name, as `create_tables` makes them and as VACUUM does."""
    layouts = []
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        for script in (TABLES, "VACUUM"):
            fresh.executescript(script)
            layouts.append(dict(fresh.execute("SELECT name, rootpage FROM sqlite_master").fetchall()))
    return layouts


def _likely_layout(roots: Mapping[str, int], most: int) -> dict[str, int] | None:
    """Return the layout from which at most so many root pages differ; None for another, as migrated learners have.

    Of a learner that was migrated from format 4 only the newest table is elsewhere: behind what it held then.
    """
    for fresh in _layouts():
        layout = {**fresh, _NEWEST_TABLE: max(fresh[_NEWEST_TABLE], roots.get(_NEWEST_TABLE, 0))}
        if len(layout.items() - roots.items()) <= most:
            return layout
    return None


def restored_page(page: bytes) -> bytes:
    """Return the first page of a database with its tables described again, at the root pages of the damaged one.

    Raises:
        sqlite3.DatabaseError: A table cannot be found.
    """
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        fresh.execute(f"PRAGMA page_size = {header.PAGE_BYTES}")
        fresh.executescript(TABLES)
        objects = fresh.execute("SELECT type, name, tbl_name FROM sqlite_master").fetchall()
        found = header.root_pages(page, objects)  # never that of the index of UNIQUE, which has no text
        roots = _likely_layout(found, 2) or found
        if len(roots) < len(objects) - 1:
            raise sqlite3.DatabaseError("malformed database schema")
        fresh.execute("PRAGMA writable_schema = ON")
        update = "UPDATE sqlite_master SET rootpage = ? WHERE name = ?"
        fresh.executemany(update, [(root, name) for name, root in roots.items()])
        return page[: header.HEADER_BYTES] + fresh.serialize()[header.HEADER_BYTES : header.PAGE_BYTES]


def _columns(connection: sqlite3.Connection, type_pattern: str) -> list[tuple[str, ...]]:
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type LIKE ? ORDER BY name", (type_pattern,)
    ).fetchall()
    with_check = "SELECT name, 'check' FROM sqlite_master WHERE type LIKE ? AND sql LIKE ? ORDER BY name"
    return [
        (name, *row)
        for (name,) in names
        for pragma in ("table_info", "index_info")
        for row in connection.execute(f"SELECT * FROM pragma_{pragma}(?)", (name,))  # noqa: S608
    ] + connection.execute(with_check, (type_pattern, f"%{_CHECK}%")).fetchall()


def row_checksum(row_id: object, data: object) -> int:
    """Return a checksum of a row's data and id, so that data under a wrong id is noticed; -1 if it is not bytes."""
    if not isinstance(row_id, int) or not isinstance(data, bytes):
        return -1
    return zlib.crc32(data, row_id & 0xFFFFFFFF)


@contextlib.contextmanager
def database_errors(path: Path | None) -> Iterator[None]:
    """Turn an error of SQLite in the block into a `SiestaError` with a message about the learner at `path`."""
    try:
        yield
    except sqlite3.ProgrammingError as error:  # a wrong call, not a damaged file
        if "closed" in str(error):
            raise BadInput(f"this handle of {path} was closed or replaced by a newer one: use the newer one") from error
        raise
    except UnsyncedCommit as error:
        raise DiskRefused(
            f"the disk of {path} refused to sync the last change, which may have been made all the same: check the "
            "disk, and look before you repeat it"
        ) from error
    except sqlite3.OperationalError as error:
        message = " ".join(str(error).split())
        if any(part in message for part in ("no such table", "no such column", "Could not decode")):
            raise Damaged(f"{path}/store.sqlite is damaged ({message}): {_REMEDY}") from error
        if "full" in message or (path is not None and is_full(path)):
            message = f"the disk of {path} is full: the last change was not made, free disk space and try again"
        elif "readonly" in message or "unable to open" in message:
            message = f"{path} cannot be written to: check its permissions or its disk"
        else:
            message = f"the disk of {path} refused ({message}): the last change was not made, check it and try again"
        raise DiskRefused(message) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # SQLite may quote damaged text
        message = " ".join(str(error).split())
        raise Damaged(f"{path}/store.sqlite is damaged ({message}): {_REMEDY}") from error


class UnsyncedCommit(sqlite3.OperationalError):
    """A commit that was written but not synced: the next process that opens the database may apply it."""


class Transaction:
    """Commits everything that its block writes, or nothing of it.

    Ctrl-C may come at any moment, also between BEGIN and the block or while the block is left: a transaction that
    stays open is rolled back by the next one. A class, as a generator that is collected late could roll back another.

    Args:
        connection: The connection to write through.
        errors: Makes the context in which errors of SQLite and of the block are translated.
        synced: Sync the commit to disk, whatever the connection's `synchronous`.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        errors: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
        *,
        synced: bool = False,
    ) -> None:
        self._connection = connection
        self._errors = errors
        self._synced = synced

    def __enter__(self) -> None:
        with self._errors():
            self._roll_back()
            if self._synced:
                (self._usual,) = self._connection.execute("PRAGMA synchronous").fetchone()
                self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        with self._errors():
            try:
                if error is not None:
                    raise error
                self._commit()
            finally:
                self._roll_back()
                if self._synced:
                    self._connection.execute(f"PRAGMA synchronous = {self._usual}")

    def _commit(self) -> None:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_IOERR_FSYNC and not self._is_undone():
                raise UnsyncedCommit(*error.args) from error
            raise

    def _is_undone(self) -> bool:
        """Roll back, and clear the log, which has the refused commit; return whether that was possible."""
        try:
            self._roll_back()
            (busy, _, _) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error:
            return False
        return not busy

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
