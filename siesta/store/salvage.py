"""Salvage of a malformed database: every row that can still be read is copied into a new one."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from siesta.files import sync_folder
from siesta.store import header, schema
from siesta.store.check import decode_text

__all__ = ["remove_leftovers", "replace_database", "salvage_database"]

_MAX_FAILURES = 100_000  # failed reads before the rest of a table is given up
_LARGEST_ROWID = 2**63 - 1
_COLUMNS = {
    "classes": 5,
    "recent": 4,
    "samples": 6,
    "codes": 3,
    "keys": 2,
    "generations": 5,
    "in_use": 2,
    "audit": 3,
    "drift": 3,
    "thumbnails": 3,
    "rejected": 4,
}
"""Number of columns by table; the statistics of the head are left out, because repair computes them anew."""
_WITHOUT_SAMPLE = "(id, class_id) NOT IN (SELECT id, class_id FROM samples)"


@contextlib.contextmanager
def salvage_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a new database with all rows that can be read; it is removed afterwards unless it was put to use."""
    new = _work_file(path)
    remove_leftovers(path)
    try:
        with contextlib.closing(schema.connect(new, read_only=False, synchronous="FULL")) as target:
            schema.create_tables(target)
            with contextlib.closing(_readable(path)) as old:
                _fill(old, target)
            yield target
    finally:
        remove_leftovers(path)


def _readable(path: Path) -> sqlite3.Connection:
    """Connect to the old database, or to a copy with a restored schema if its own does not describe its tables."""
    with contextlib.suppress(sqlite3.DatabaseError, UnicodeDecodeError):
        old = schema.connect(path / schema.DATABASE, read_only=True, synchronous="NORMAL")
        if schema.has_current_columns(old, "table"):
            return old
        old.close()
    copy = _work_file(path, "copy")
    for ending in ("", "-wal"):
        if (path / f"{schema.DATABASE}{ending}").exists():
            shutil.copyfile(path / f"{schema.DATABASE}{ending}", f"{copy}{ending}")
    with copy.open("r+b") as file:
        page = schema.restored_page(file.read(header.PAGE_BYTES))
        file.seek(0)
        file.write(page)
    old = schema.connect(copy, read_only=True, synchronous="NORMAL")
    if not schema.has_current_columns(old, "table"):
        old.close()
        raise sqlite3.DatabaseError("malformed database schema")
    return old


def replace_database(path: Path, connection: sqlite3.Connection) -> None:
    """Replace the database by the salvaged one; the old one stays as `store.sqlite.damaged` with its log."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    file = path / schema.DATABASE
    for ending in ("", "-wal", "-shm"):
        Path(f"{file}.damaged{ending}").unlink(missing_ok=True)
    try:
        Path(f"{file}.damaged").hardlink_to(file)
    except OSError:  # not every file system has hard links
        shutil.copyfile(file, f"{file}.damaged")
    with contextlib.suppress(FileNotFoundError):  # SQLite would apply it to the new database
        Path(f"{file}-wal").rename(f"{file}.damaged-wal")
    Path(f"{file}-shm").unlink(missing_ok=True)
    _work_file(path).replace(file)
    sync_folder(path)


def _work_file(path: Path, name: str = "salvaged") -> Path:
    return path / f"{schema.DATABASE}.{name}"


def remove_leftovers(path: Path) -> None:
    """Remove the files of a salvage that was killed."""
    for name in ("salvaged", "copy"):
        for ending in ("", "-wal", "-shm", "-journal"):
            Path(f"{_work_file(path, name)}{ending}").unlink(missing_ok=True)


def _fill(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    old.text_factory = decode_text
    old.execute("PRAGMA cell_size_check = ON")
    sequence = dict(_until_it_fails(old, "SELECT name, seq FROM sqlite_sequence"))
    with schema.Transaction(new):
        _copy(new, "settings", 2, _until_it_fails(old, "SELECT name, value FROM settings"))
        for table, columns in _COLUMNS.items():
            _copy(new, table, columns, _rows(old, table, *_bounds(table, sequence)))
        _restore_from_index(old, new)
        new.execute(f"DELETE FROM thumbnails WHERE {_WITHOUT_SAMPLE}")  # noqa: S608
        _set_sequence(new, sequence)


def _bounds(table: str, sequence: dict[Any, Any]) -> tuple[int, int]:
    """Return the smallest and the largest row id that a table may have."""
    if table == "keys":
        return -_LARGEST_ROWID - 1, _LARGEST_ROWID
    counter = {
        "classes": "classes",
        "recent": "classes",
        "samples": "samples",
        "codes": "samples",
        "rejected": "samples",
    }.get(table)
    newest = sequence.get(counter)
    return 0, newest if isinstance(newest, int) and newest > 0 else 2**31


def _copy(new: sqlite3.Connection, table: str, columns: int, rows: Iterator[tuple[Any, ...]]) -> None:
    places = ", ".join("?" * columns)
    new.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({places})", rows)  # noqa: S608


def _rows(old: sqlite3.Connection, table: str, first: int, last: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows with ids in a range that can be read.

    A range is read from both ends up to the first row that cannot be read; the rest is halved.
    """
    ranges = deque([(first, last)])
    attempts = _MAX_FAILURES
    while ranges and attempts:
        first, last = ranges.popleft()
        attempts -= 1
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
    query = f"SELECT * FROM {table} WHERE rowid BETWEEN ? AND ? ORDER BY rowid {order}"  # noqa: S608
    for row in old.execute(query, (first, last)):
        if not isinstance(row[0], int) or not first <= row[0] <= last:
            raise sqlite3.DatabaseError("rows are out of order")
        first, last = (row[0] + 1, last) if ascending else (first, row[0] - 1)
        yield row


def _until_it_fails(old: sqlite3.Connection, query: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query up to one that cannot be read; all again, once, for the disk may deliver it then."""
    for _ in range(2):
        with contextlib.suppress(sqlite3.DatabaseError):
            yield from old.execute(query)
            return


def _restore_from_index(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """Restore lost rows of samples from the index, which has class and slot of a sample too.

    Samples whose class differs between table and index are dropped. Restored samples have no rehearsal counts.
    """
    new.execute("CREATE TEMP TABLE indexed (id INTEGER PRIMARY KEY, class_id, slot)")
    for order in ("class_id, slot", "class_id DESC, slot DESC"):
        query = f"SELECT id, class_id, slot FROM samples INDEXED BY samples_by_class ORDER BY {order}"  # noqa: S608
        new.executemany("INSERT OR IGNORE INTO indexed VALUES (?, ?, ?)", _until_it_fails(old, query))
    contradictory = new.execute(
        "SELECT id FROM samples JOIN indexed USING (id) WHERE samples.class_id != indexed.class_id"
    ).fetchall()
    for table in ("samples", "indexed"):
        new.executemany(f"DELETE FROM {table} WHERE id = ?", contradictory)  # noqa: S608
    lost = "id NOT IN (SELECT id FROM samples) AND id IN (SELECT id FROM codes)"
    new.execute(f"INSERT OR IGNORE INTO samples SELECT id, class_id, slot, 0, 0, 0 FROM indexed WHERE {lost}")  # noqa: S608
    new.execute("DROP TABLE indexed")


def _set_sequence(new: sqlite3.Connection, sequence: dict[Any, Any]) -> None:
    """Set the counters of ids, so that no id is given twice."""
    largest_known = (
        "SELECT max(number) FROM (SELECT max(sample_id) AS number FROM keys UNION SELECT max(since) FROM generations"
        " UNION SELECT max(id) FROM rejected)"
    )
    queries = {"samples": largest_known, "classes": "SELECT 0", "audit": "SELECT 0"}
    for table, query in queries.items():
        (largest,) = new.execute(query).fetchone()
        (present,) = new.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()  # noqa: S608
        numbers = [number for number in (largest, present, sequence.get(table)) if isinstance(number, int)]
        new.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        if max(numbers):
            new.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, max(numbers)))
