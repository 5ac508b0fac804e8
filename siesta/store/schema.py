"""The tables of `store.sqlite`, and how a connection to them is opened."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from siesta.errors import BadInput, Damaged, DiskRefused

__all__ = [
    "DATABASE",
    "FORMAT",
    "check_format",
    "connect",
    "database_errors",
    "describe_anew",
    "has_our_columns",
    "is_ours",
    "make_tables",
    "migrate",
    "row_checksum",
    "transaction",
]

DATABASE = "store.sqlite"
FORMAT = 3
"""Goes up when a learner's files change in a way that older code would misread."""

_WAY_OUT = "`siesta check` names the damage, `siesta repair` keeps what can be read of it"
_APPLICATION = 0x51E57A  # "SIESTA", as far as hexadecimal goes

_TABLES = """
-- what does not change: the learner's settings as JSON
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- `taught` counts every sample ever learned, `stored` those still in memory, `held` those of them that no sleep sees
CREATE TABLE classes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    label TEXT NOT NULL UNIQUE,
    taught INTEGER NOT NULL,
    stored INTEGER NOT NULL,
    held INTEGER NOT NULL DEFAULT 0
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
    rehearsed INTEGER NOT NULL,
    held INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX samples_by_class ON samples (class_id, slot);
CREATE TABLE codes (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, codes BLOB NOT NULL);

-- keys of what was taught under a key, kept after eviction so that it is not taught again
CREATE TABLE keys (key INTEGER PRIMARY KEY, sample_id INTEGER NOT NULL);

-- hashes and report are JSON; without hashes the files are gone; since: the newest sample that is in its head
CREATE TABLE generations (
    number INTEGER PRIMARY KEY,
    made TEXT NOT NULL,
    hashes TEXT NOT NULL,
    since INTEGER NOT NULL,
    report TEXT
);
CREATE TABLE in_use (id INTEGER PRIMARY KEY CHECK (id = 0), generation INTEGER NOT NULL);

-- what was changed after it was taught, as JSON
CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT, made TEXT NOT NULL, what TEXT NOT NULL);

-- how well the codec suits what is taught: a running mean of its relative error, and of how many samples
CREATE TABLE drift (id INTEGER PRIMARY KEY CHECK (id = 0), count INTEGER NOT NULL, error REAL NOT NULL);

-- small pictures of the newest samples of each class
CREATE TABLE thumbnails (id INTEGER PRIMARY KEY, class_id INTEGER NOT NULL, picture BLOB NOT NULL);
CREATE INDEX thumbnails_by_class ON thumbnails (class_id, id);
"""

# the newest row was the one in use, ids of samples have no gaps, and what was taught since the last sleep came last
_FROM_1 = """
ALTER TABLE classes ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE samples ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE generations RENAME TO generations_1;
CREATE TABLE generations (
    number INTEGER PRIMARY KEY,
    made TEXT NOT NULL,
    hashes TEXT NOT NULL,
    since INTEGER NOT NULL,
    report TEXT
);
INSERT INTO generations SELECT
    number,
    made,
    CASE number WHEN (SELECT max(number) FROM generations_1) THEN hashes ELSE '' END,
    (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'samples')
        - (SELECT coalesce(sum(count), 0) FROM recent),
    report
FROM generations_1;
DROP TABLE generations_1;
CREATE TABLE in_use (id INTEGER PRIMARY KEY CHECK (id = 0), generation INTEGER NOT NULL);
INSERT INTO in_use SELECT 0, max(number) FROM generations;
CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT, made TEXT NOT NULL, what TEXT NOT NULL);
CREATE TABLE drift (id INTEGER PRIMARY KEY CHECK (id = 0), count INTEGER NOT NULL, error REAL NOT NULL);
"""

_FROM_2 = """
CREATE TABLE thumbnails (id INTEGER PRIMARY KEY, class_id INTEGER NOT NULL, picture BLOB NOT NULL);
CREATE INDEX thumbnails_by_class ON thumbnails (class_id, id);
"""
_FROM = {1: _FROM_1, 2: _FROM_2}


def connect(file: Path | None, read_only: bool, synchronous: str) -> sqlite3.Connection:
    """Opens the database of a learner (None: in memory) with its format unchecked.

    Args:
        file: Where it lies.
        read_only: Whether nothing will be written.
        synchronous: What SQLite syncs: "NORMAL" survives the death of the process, "FULL" that of the machine.
    """
    if file is None:
        return _prepared(sqlite3.connect(":memory:", isolation_level=None), synchronous)
    address = f"file:{quote(os.fsencode(file.resolve()))}"
    if not read_only:
        return _prepared(sqlite3.connect(f"{address}?mode=rwc", uri=True, isolation_level=None), synchronous)
    try:
        return _prepared(sqlite3.connect(f"{address}?mode=ro", uri=True, isolation_level=None), synchronous)
    except sqlite3.OperationalError:
        # a read-only or full disk has no room for a WAL's shared memory; where no WAL is left, none is needed
        wal = file.with_name(f"{file.name}-wal")
        if wal.exists() and wal.stat().st_size:
            raise
        return _prepared(sqlite3.connect(f"{address}?immutable=1", uri=True, isolation_level=None), synchronous)


def _prepared(connection: sqlite3.Connection, synchronous: str) -> sqlite3.Connection:
    try:
        connection.execute("PRAGMA page_size = 16384")  # codes of 1.5 KB waste little of a large page
        connection.execute("PRAGMA cache_size = -32768")  # KiB
        connection.execute("PRAGMA busy_timeout = 10000")
        connection.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    except UnicodeDecodeError as error:  # of the words in which SQLite complains about its tables
        connection.close()
        raise sqlite3.DatabaseError("malformed database schema") from error
    return connection


def make_tables(connection: sqlite3.Connection) -> None:
    """Fills an empty database."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(_TABLES)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def check_format(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether it has today's format; refuses what is not a learner, or is newer than this code."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise BadInput(f"{path} is not a siesta learner: make one with `siesta new`")
    if version > FORMAT:
        raise Damaged(f"{path} has format {version} and this siesta reads up to {FORMAT}: upgrade siesta-learn")
    return bool(version == FORMAT)


def is_ours(connection: sqlite3.Connection) -> bool:
    """Whether the tables are those of today's format, whatever the header says."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'thumbnails'").fetchone() is not None


def has_our_columns(connection: sqlite3.Connection, of: str = "%") -> bool:
    """Whether tables and indices, or those of the type `of` alone, have the columns that `make_tables` gave them."""
    with contextlib.closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(_TABLES)
        return _columns(connection, of) == _columns(fresh, of)


def describe_anew(connection: sqlite3.Connection) -> None:
    """Writes over the description of the tables, where damage has changed it; connect again to see it."""
    with contextlib.closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(_TABLES)
        rows = fresh.execute("SELECT sql, name FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    connection.execute("PRAGMA writable_schema = ON")
    connection.executemany("UPDATE sqlite_master SET sql = ? WHERE name = ?", rows)


def _columns(connection: sqlite3.Connection, of: str) -> list[tuple[str, ...]]:
    names = connection.execute("SELECT name FROM sqlite_master WHERE type LIKE ? ORDER BY name", (of,)).fetchall()
    return [
        (name, *row)
        for (name,) in names
        for kind in ("table_info", "index_info")
        for row in connection.execute(f"PRAGMA {kind}({name})")
    ]


def migrate(connection: sqlite3.Connection) -> None:
    """Brings a learner of an older siesta to today's format, whole or not at all."""
    with transaction(connection):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for older in range(version, FORMAT):  # none, where somebody was quicker
            for statement in _FROM[older].split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {FORMAT}")


def row_checksum(row_id: object, data: object) -> int:
    """Starts from the id, so that data under a wrong id are noticed too; -1 of what damage has made no bytes."""
    if not isinstance(row_id, int) or not isinstance(data, bytes):
        return -1
    return zlib.crc32(data, row_id & 0xFFFFFFFF)


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
        words = " ".join(str(error).split())
        if any(sign in words for sign in ("no such table", "no such column", "Could not decode")):
            raise Damaged(f"{path}/store.sqlite is damaged ({words}): {_WAY_OUT}") from error
        if "full" in words:
            words = f"the disk of {path} is full: nothing was changed, free some room and try again"
        elif "readonly" in words or "unable to open" in words:
            words = f"{path} cannot be written to: check its permissions or its disk"
        else:
            words = f"the disk of {path} refused ({words}): nothing was changed, check it and try again"
        raise DiskRefused(words) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # SQLite may quote damaged text in its words
        words = " ".join(str(error).split())
        raise Damaged(f"{path}/store.sqlite is damaged ({words}): {_WAY_OUT}") from error


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
