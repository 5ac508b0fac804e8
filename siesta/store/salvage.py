"""What can still be read of a database that SQLite finds malformed, row by row, into a new one."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from siesta.store import files, schema
from siesta.store.check import decoded

__all__ = ["put_in_place", "remove_leftovers", "salvaged"]

_TRIES = 100_000  # reads that may fail before the rest of a table is given up
_LARGEST = 2**63 - 1
# thumbnails are left behind: they are there to be looked at, and nothing vouches for them
_WIDTHS = {"classes": 5, "recent": 4, "samples": 5, "codes": 3, "keys": 2, "generations": 5, "in_use": 2}


@contextlib.contextmanager
def salvaged(path: Path) -> Iterator[sqlite3.Connection]:
    """A new database beside the old one, with all rows that can be read; gone afterwards, unless put in place."""
    new = _beside(path)
    remove_leftovers(path)
    try:
        with contextlib.closing(schema.connect(new, read_only=False, synchronous="FULL")) as target:
            schema.make_tables(target)
            with contextlib.closing(_readable(path)) as old:
                _fill(old, target)
            yield target
    finally:
        remove_leftovers(path)


def _readable(path: Path) -> sqlite3.Connection:
    """The old database, or a copy with its tables described anew where rows could not be told apart without it."""
    with contextlib.suppress(sqlite3.DatabaseError, UnicodeDecodeError):
        old = schema.connect(path / schema.DATABASE, read_only=True, synchronous="NORMAL")
        if schema.has_our_columns(old, "table"):
            return old
        old.close()
    copy = _beside(path, "copy")
    for ending in ("", "-wal"):
        if (path / f"{schema.DATABASE}{ending}").exists():
            shutil.copyfile(path / f"{schema.DATABASE}{ending}", f"{copy}{ending}")
    with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as described:
        schema.describe_anew(described)
    old = schema.connect(copy, read_only=True, synchronous="NORMAL")
    if not schema.has_our_columns(old, "table"):
        old.close()
        raise sqlite3.DatabaseError("malformed database schema")
    return old


def put_in_place(path: Path, connection: sqlite3.Connection) -> None:
    """Lets what was salvaged take the place of the old database, which is kept beside it with its write-ahead log."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    file = path / schema.DATABASE
    for ending in ("", "-wal", "-shm"):
        Path(f"{file}.damaged{ending}").unlink(missing_ok=True)
    try:
        Path(f"{file}.damaged").hardlink_to(file)
    except OSError:  # not every file system can
        shutil.copyfile(file, f"{file}.damaged")
    with contextlib.suppress(FileNotFoundError):  # a log must not be found beside a database that is not its own
        Path(f"{file}-wal").rename(f"{file}.damaged-wal")
    Path(f"{file}-shm").unlink(missing_ok=True)
    _beside(path).replace(file)
    files.sync_folder(path)


def _beside(path: Path, name: str = "salvaged") -> Path:
    return path / f"{schema.DATABASE}.{name}"


def remove_leftovers(path: Path) -> None:
    """What a salvage that was killed left behind."""
    for name in ("salvaged", "copy"):
        for ending in ("", "-wal", "-shm", "-journal"):
            Path(f"{_beside(path, name)}{ending}").unlink(missing_ok=True)


def _fill(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    old.text_factory = decoded
    old.execute("PRAGMA cell_size_check = ON")
    sequence = dict(_until_it_fails(old, "SELECT name, seq FROM sqlite_sequence"))
    with schema.transaction(new):
        _copy(new, "settings", 2, _until_it_fails(old, "SELECT name, value FROM settings"))
        for table, width in _WIDTHS.items():
            _copy(new, table, width, _rows(old, table, *_bounds(table, sequence)))
        _by_index(old, new)
        _set_sequence(new, sequence)


def _bounds(table: str, sequence: dict[Any, Any]) -> tuple[int, int]:
    """Between which numbers the rows of a table lie."""
    if table == "keys":
        return -_LARGEST - 1, _LARGEST
    counter = {"classes": "classes", "recent": "classes", "samples": "samples", "codes": "samples"}.get(table)
    newest = sequence.get(counter)
    return 0, newest if isinstance(newest, int) and newest > 0 else 2**31


def _copy(new: sqlite3.Connection, table: str, width: int, rows: Iterator[tuple[Any, ...]]) -> None:
    places = ", ".join("?" * width)
    new.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({places})", rows)  # noqa: S608


def _rows(old: sqlite3.Connection, table: str, first: int, last: int) -> Iterator[tuple[Any, ...]]:
    """Rows with numbers in a range: from both ends to where they cannot be read, then from the middle of the rest."""
    ranges, tries = deque([(first, last)]), _TRIES
    while ranges and tries:
        first, last = ranges.popleft()
        tries -= 1
        for ascending in (True, False):
            try:
                for row in _ordered(old, table, first, last, ascending):
                    first, last = (row[0] + 1, last) if ascending else (first, row[0] - 1)
                    yield row
                break
            except sqlite3.DatabaseError:
                continue
        else:
            if first < last:
                middle = (first + last) // 2
                ranges += [(first, middle), (middle + 1, last)]


def _ordered(old: sqlite3.Connection, table: str, first: int, last: int, ascending: bool) -> Iterator[tuple[Any, ...]]:
    order = "ASC" if ascending else "DESC"
    question = f"SELECT * FROM {table} WHERE rowid BETWEEN ? AND ? ORDER BY rowid {order}"  # noqa: S608
    for row in old.execute(question, (first, last)):
        if not isinstance(row[0], int) or not first <= row[0] <= last:
            raise sqlite3.DatabaseError("rows are out of order")
        first, last = (row[0] + 1, last) if ascending else (first, row[0] - 1)
        yield row


def _until_it_fails(old: sqlite3.Connection, question: str) -> Iterator[tuple[Any, ...]]:
    with contextlib.suppress(sqlite3.DatabaseError):
        yield from old.execute(question)


def _by_index(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """The index knows class and slot of a sample too: it stands in for lost rows, and where the two differ, who knows.

    Rehearsals are counted anew for those.
    """
    new.execute("CREATE TEMP TABLE indexed (id INTEGER PRIMARY KEY, class_id, slot)")
    for order in ("class_id, slot", "class_id DESC, slot DESC"):
        question = f"SELECT id, class_id, slot FROM samples INDEXED BY samples_by_class ORDER BY {order}"  # noqa: S608
        new.executemany("INSERT OR IGNORE INTO indexed VALUES (?, ?, ?)", _until_it_fails(old, question))
    doubtful = new.execute(
        "SELECT id FROM samples JOIN indexed USING (id) WHERE samples.class_id != indexed.class_id"
    ).fetchall()
    for table in ("samples", "indexed"):
        new.executemany(f"DELETE FROM {table} WHERE id = ?", doubtful)  # noqa: S608
    lost = "id NOT IN (SELECT id FROM samples) AND id IN (SELECT id FROM codes)"
    new.execute(f"INSERT OR IGNORE INTO samples SELECT id, class_id, slot, 0, 0 FROM indexed WHERE {lost}")  # noqa: S608
    new.execute("DROP TABLE indexed")


def _set_sequence(new: sqlite3.Connection, sequence: dict[Any, Any]) -> None:
    """No number is given twice."""
    seen = (
        "SELECT max(number) FROM (SELECT max(sample_id) AS number FROM keys UNION SELECT max(since) FROM generations)"
    )
    known = {"samples": seen, "classes": "SELECT 0"}
    for table, question in known.items():
        (largest,) = new.execute(question).fetchone()
        (present,) = new.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()  # noqa: S608
        numbers = [number for number in (largest, present, sequence.get(table)) if isinstance(number, int)]
        new.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        new.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, max(numbers)))
