"""Check of every row and every file of a learner on disk; read-only, while other processes teach or sleep."""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from siesta.errors import BadInput, Damaged
from siesta.store import schema
from siesta.store.folder import require_learner
from siesta.store.rejections import rejection_is_intact
from siesta.store.settings import read_settings
from siesta.store.statistics import counted_is_intact, sums_are_intact
from siesta.store.tensor_files import has_current

__all__ = [
    "NEWEST_IDS",
    "REBUILDABLE",
    "Finding",
    "FindingKind",
    "check_database",
    "check_store",
    "decode_text",
    "read_table",
]

FindingKind = Literal[
    "database",
    "header",
    "settings",
    "sample",
    "class",
    "sums",
    "statistics",
    "constant",
    "cache",
    "generation",
    "report",
    "edit",
    "drift",
    "rejection",
    "in use",
]
"""What is damaged; a "cache" can be made again without loss."""

REBUILDABLE = ("graphs",)

NEWEST_IDS = {
    "samples": "SELECT max(coalesce(max(id), 0), (SELECT coalesce(max(id), 0) FROM rejected)) FROM samples",
    "classes": "SELECT coalesce(max(id), 0) FROM classes",
    "audit": "SELECT coalesce(max(id), 0) FROM audit",
}
"""Queries for the largest id that each counter has given, as far as it is still stored."""

_MAX_LINES = 20  # of SQLite's integrity check


@dataclass(frozen=True)
class Finding:
    """One damage that was found.

    Attributes:
        kind: What is damaged.
        words: Description in one line.
        item: Id of the sample or class, number of the generation, or name of the file that is damaged.
    """

    kind: FindingKind
    words: str
    item: int | str | None = None


def check_store(path: Path) -> list[Finding]:
    """Return everything that is damaged in the store at `path`."""
    path = path.absolute()
    require_learner(path)
    try:
        connection = schema.connect(path / schema.DATABASE, read_only=True, synchronous="NORMAL")
    except sqlite3.OperationalError:
        with schema.database_errors(path):
            raise
    except sqlite3.DatabaseError as error:
        return [Finding("database", f"store.sqlite cannot be read: {error}")]
    with contextlib.closing(connection):
        findings = check_database(connection, path)
        if any(found.kind == "generation" for found in findings):  # or a process slept or edited meanwhile
            confirmed = check_database(connection, path)
            findings = [found for found in findings if found in confirmed]
        return findings


def check_database(connection: sqlite3.Connection, path: Path) -> list[Finding]:
    """Return what is damaged in a database, as of one moment, and in the files at `path` whose hashes it records."""
    findings: list[Finding] = []
    connection.execute("BEGIN")
    try:
        _collect(findings, _header(connection, path))
        if not any(found.kind == "database" for found in findings):  # otherwise no row can be trusted
            for part in (_integrity, _samples, _classes, _sums, _statistics, _rejections, _records):
                _collect(findings, part(connection))
            _collect(findings, _settings(connection, path))
            _collect(findings, _generations(connection, path))
    finally:
        connection.execute("ROLLBACK")
    return findings


def _collect(findings: list[Finding], part: Iterator[Finding]) -> None:
    """Add the findings of one part; that it cannot be read at all is a finding too."""
    try:
        findings += part
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not any(found.kind == "database" for found in findings):
            findings.append(Finding("database", f"store.sqlite: {_one_line(error)}"))


def _header(connection: sqlite3.Connection, path: Path) -> Iterator[Finding]:
    """Check the format and the tables; refuse a database that is not that of a learner, or has another format."""
    schema.refuse_others(connection, path)
    version = schema.format_of_tables(connection)
    if version is None:
        yield Finding("database", "store.sqlite: the description of the tables is damaged")
    elif version < schema.FORMAT:
        raise BadInput(f"{path} was written by an older siesta: open it once, then check it")
    elif schema.header_version(connection) != version:
        yield Finding("header", "store.sqlite: the format in its header is damaged")


def _integrity(connection: sqlite3.Connection) -> Iterator[Finding]:
    for (line,) in connection.execute(f"PRAGMA integrity_check({_MAX_LINES})").fetchall():
        if line != "ok":
            yield Finding("database", f"store.sqlite: {_one_line(line)}")


def _samples(connection: sqlite3.Connection) -> Iterator[Finding]:
    for sample, checksum, codes in read_table(connection, "codes"):
        if checksum != schema.row_checksum(sample, codes):
            yield Finding("sample", f"sample {sample}: its codes are damaged", sample)
    for sample in _ids(connection, "SELECT id FROM samples WHERE id NOT IN (SELECT id FROM codes)"):
        yield Finding("sample", f"sample {sample}: its codes are lost", sample)
    for sample in _ids(connection, "SELECT id FROM codes WHERE id NOT IN (SELECT id FROM samples)"):
        yield Finding("sample", f"sample {sample}: the class of its codes is lost", sample)
    invalid = (
        "typeof(class_id) != 'integer' OR typeof(rehearsed) != 'integer' OR rehearsed < 0"
        " OR held NOT IN (0, 1, 2) OR counted NOT IN (0, 1)"
    )
    for sample in _ids(connection, f"SELECT id FROM samples WHERE {invalid}"):  # noqa: S608
        yield Finding("sample", f"sample {sample}: its row is damaged", sample)


def _classes(connection: sqlite3.Connection) -> Iterator[Finding]:
    for class_id in _ids(
        connection, "SELECT DISTINCT class_id FROM samples WHERE class_id NOT IN (SELECT id FROM classes)"
    ):
        yield Finding("class", f"class {class_id}: its name is lost", class_id)
    for class_id, label, taught, stored, held in read_table(connection, "classes"):
        if not isinstance(label, str) or not all(isinstance(count, int) for count in (taught, stored, held)):
            yield Finding("class", f"class {class_id}: its row is damaged", class_id)
            continue
        count, slots, last, kept = connection.execute(
            "SELECT count(*), count(DISTINCT slot), coalesce(max(slot) + 1, 0), coalesce(sum(held > 0), 0)"
            " FROM samples WHERE class_id = ? AND slot >= 0",
            (class_id,),
        ).fetchone()
        if not count == slots == last == stored:
            words = f"counts {stored} stored samples where {count} are, in slots up to {last}"
            yield Finding("class", f"class '{label}': {words}", class_id)
        elif kept != held or taught < stored:
            yield Finding("class", f"class '{label}': its counts do not fit its samples", class_id)
    counters = dict(read_table(connection, "sqlite_sequence"))
    for table, query in NEWEST_IDS.items():
        (newest,) = connection.execute(query).fetchone()
        counted = counters.get(table)
        if newest and (not isinstance(counted, int) or counted < newest):
            yield Finding("class", f"store.sqlite: the number of the newest of its {table} is lost")


def _sums(connection: sqlite3.Connection) -> Iterator[Finding]:
    for class_id, count, checksum, total in read_table(connection, "recent"):
        if checksum != schema.row_checksum(class_id, total) or not isinstance(count, int) or count < 1:
            yield Finding(
                "sums", f"class {class_id}: the sums of what was taught since the last sleep are damaged", class_id
            )
    for class_id in _ids(connection, "SELECT class_id FROM recent WHERE class_id NOT IN (SELECT id FROM classes)"):
        yield Finding("sums", f"class {class_id}: it has a sum, but its row is lost", class_id)


def _statistics(connection: sqlite3.Connection) -> Iterator[Finding]:
    tables = ("gram", "class_sums", "counted_since")
    rows = {table: list(read_table(connection, table)) for table in tables}
    (head,) = connection.execute("SELECT max(value) FROM settings WHERE name = 'head'").fetchone()
    if not rows["gram"]:
        if head == json.dumps("discriminant") or rows["class_sums"] or rows["counted_since"]:
            yield Finding("statistics", "the statistics of the head are lost")
        return
    _, number, checksum, gram = rows["gram"][0]
    if not sums_are_intact(number, checksum, gram, rows["class_sums"]) or not all(
        map(counted_is_intact, rows["counted_since"])
    ):
        yield Finding("statistics", "the statistics of the head are damaged")


def _rejections(connection: sqlite3.Connection) -> Iterator[Finding]:
    classes = {row[0] for row in connection.execute("SELECT id FROM classes")}
    for row in read_table(connection, "rejected"):
        if not rejection_is_intact(row) or row[1] not in classes:
            yield Finding("rejection", f"rejection {row[0]} is damaged", row[0])


def _records(connection: sqlite3.Connection) -> Iterator[Finding]:
    for number, made, what in read_table(connection, "audit"):
        if not _is_date(made) or _json(what) is None:
            yield Finding("edit", f"the record of edit {number} is damaged", number)
    for _, count, error in read_table(connection, "drift"):
        if not isinstance(count, int) or not isinstance(error, float) or not (count > 0 and 0 <= error < math.inf):
            yield Finding("drift", "the measured error of the codec is damaged")


def _settings(connection: sqlite3.Connection, path: Path) -> Iterator[Finding]:
    try:
        hashes = read_settings(connection, path)["hashes"].items()
    except (Damaged, KeyError, AttributeError):
        yield Finding("settings", "store.sqlite: the settings are damaged")
        return
    for name, expected in hashes:
        if has_current(path, name, expected):
            continue
        if name in REBUILDABLE:
            yield Finding("cache", f"{name}.safetensors is damaged; it can be made again", name)
        else:
            yield Finding("constant", f"{name}.safetensors is damaged", name)


def _generations(connection: sqlite3.Connection, path: Path) -> Iterator[Finding]:
    with_files: set[int] = set()
    for number, made, text, since, report in read_table(connection, "generations"):
        if text == "":
            continue
        with_files.add(number)
        hashes = _json(text)
        if not hashes or not _is_date(made) or not isinstance(since, int):
            yield Finding("generation", f"generation {number}: its row is damaged", number)
            continue
        if report is not None and _json(report) is None:
            yield Finding("report", f"generation {number}: the report of its sleep is damaged", number)
        for name, expected in hashes.items():
            folder = Path("generations", f"{number:06d}")
            if not has_current(path / folder, name, expected):
                words = f"generation {number}: {folder / name}.safetensors is damaged"
                yield Finding("generation", words, number)
    active = connection.execute("SELECT generation FROM in_use").fetchone()
    if active is None or active[0] not in with_files:
        yield Finding("in use", "the generation in use is lost")


def read_table(connection: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table, with text that is not valid UTF-8 as bytes."""
    connection.text_factory = decode_text
    try:
        yield from connection.execute(f"SELECT * FROM {table}")  # noqa: S608
    finally:
        connection.text_factory = str


def decode_text(data: bytes) -> str | bytes:
    """Return the text in UTF-8, or the bytes if damage has made it invalid."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _ids(connection: sqlite3.Connection, query: str) -> list[int]:
    return [row[0] for row in connection.execute(query)]


def _is_date(text: object) -> bool:
    try:
        return isinstance(text, str) and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def _json(text: object) -> dict[str, Any] | None:
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _one_line(message: object) -> str:
    return " ".join(str(message).split())
