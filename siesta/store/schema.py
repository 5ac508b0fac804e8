"""The tables of `store.sqlite`, and how a connection to them is opened."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from siesta.errors import BadInput, Damaged

__all__ = ["FORMAT", "connect", "database_errors", "make_tables", "transaction"]

FORMAT = 1
"""Goes up when a learner's files change in a way that older code would misread."""

_APPLICATION = 0x51E57A  # "SIESTA", as far as hexadecimal goes

_TABLES = """
-- what does not change: the learner's settings as JSON
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- `taught` counts every sample ever learned, `stored` those still in memory
CREATE TABLE classes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    label TEXT NOT NULL UNIQUE,
    taught INTEGER NOT NULL,
    stored INTEGER NOT NULL
);
CREATE INDEX classes_by_stored ON classes (stored DESC, id);

-- sum of the z taught since the last sleep, float64
CREATE TABLE recent (
    class_id INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    total BLOB NOT NULL
);

-- slot: 0 .. stored - 1 inside the class, without gaps, so that a random one is found without a scan
CREATE TABLE samples (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    class_id INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    rehearsed INTEGER NOT NULL
);
CREATE UNIQUE INDEX samples_by_class ON samples (class_id, slot);
CREATE TABLE codes (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, codes BLOB NOT NULL);

-- keys of what was taught under a key, kept after eviction so that it is not taught again
CREATE TABLE keys (key INTEGER PRIMARY KEY, sample_id INTEGER NOT NULL);

-- the newest row is the generation in use; hashes and report are JSON
CREATE TABLE generations (
    number INTEGER PRIMARY KEY,
    made TEXT NOT NULL,
    hashes TEXT NOT NULL,
    report TEXT
);
"""


def connect(file: Path | None, *, read_only: bool) -> sqlite3.Connection:
    """Opens the database of a learner (None: in memory) with its format unchecked."""
    if file is None:
        return _prepared(sqlite3.connect(":memory:", isolation_level=None))
    address = f"file:{quote(os.fsencode(file.resolve()))}"
    if not read_only:
        return _prepared(sqlite3.connect(f"{address}?mode=rwc", uri=True, isolation_level=None))
    try:
        return _prepared(sqlite3.connect(f"{address}?mode=ro", uri=True, isolation_level=None))
    except sqlite3.OperationalError:
        # a read-only or full disk has no room for a WAL's shared memory; where no WAL is left, none is needed
        wal = file.with_name(f"{file.name}-wal")
        if wal.exists() and wal.stat().st_size:
            raise
        return _prepared(sqlite3.connect(f"{address}?immutable=1", uri=True, isolation_level=None))


def _prepared(connection: sqlite3.Connection) -> sqlite3.Connection:
    try:
        connection.execute("PRAGMA page_size = 16384")  # codes of 1.5 KB waste little of a large page
        connection.execute("PRAGMA cache_size = -32768")  # KiB
        connection.execute("PRAGMA busy_timeout = 10000")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def make_tables(connection: sqlite3.Connection) -> None:
    """Fills an empty database."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(_TABLES)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Refuses what is not a learner, or is newer than this code."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise BadInput(f"{path} is not a siesta learner: make one with `siesta new`")
    if version > FORMAT:
        raise Damaged(f"{path} has format {version} and this siesta reads up to {FORMAT}: upgrade siesta-learn")


@contextlib.contextmanager
def database_errors(path: Path | None) -> Iterator[None]:
    """Turns SQLite's refusals into a sentence about the learner at `path`."""
    try:
        yield
    except sqlite3.ProgrammingError as error:  # the caller's mistake, not the file's
        if "closed" in str(error):
            raise BadInput(f"{path} was closed, or opened anew in this process: use the newer one") from error
        raise
    except sqlite3.OperationalError as error:
        words = str(error)
        if any(sign in words for sign in ("no such table", "no such column", "Could not decode")):
            raise Damaged(f"{path}/store.sqlite is damaged ({words}): restore it from a copy of the learner") from error
        if "full" in words:
            raise BadInput(f"the disk of {path} is full: nothing was changed, free some room and try again") from error
        if "readonly" in words or "unable to open" in words:
            raise BadInput(f"{path} cannot be written to: check its permissions or its disk") from error
        raise BadInput(f"the disk of {path} refused ({words}): nothing was changed, check it and try again") from error
    except sqlite3.DatabaseError as error:
        raise Damaged(f"{path}/store.sqlite is damaged ({error}): restore it from a copy of the learner") from error


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of the block is written, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
