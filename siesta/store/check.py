"""Whether all of a learner on disk is whole: every row and every file, read-only, while others teach or sleep."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from siesta.errors import BadInput, Damaged
from siesta.store import files, schema
from siesta.store.settings import read_settings

__all__ = ["CAN_BE_MADE_AGAIN", "Finding", "Kind", "check_database", "check_store", "decoded", "rows_of"]

Kind = Literal["database", "settings", "sample", "class", "sums", "constant", "cache", "generation", "report", "in use"]
"""What is damaged; a cache can be made again."""

CAN_BE_MADE_AGAIN = ("graphs",)
_LINES = 20  # of SQLite's own integrity check


@dataclass(frozen=True)
class Finding:
    """One damage.

    Attributes:
        kind: What is damaged.
        words: The same for people, in one line.
        item: Which of its kind: id of a sample or class, number of a generation, name of a file.
    """

    kind: Kind
    words: str
    item: int | str | None = None


def check_store(path: Path) -> list[Finding]:
    """All that is damaged at `path`; nothing when the learner is whole."""
    path = path.absolute()
    with files.disk_errors(path):
        if not (path / schema.DATABASE).is_file():
            raise BadInput(f"there is no learner at {path}: make one with `siesta new {path}`")
    try:
        connection = schema.connect(path / schema.DATABASE, read_only=True, synchronous="NORMAL")
    except sqlite3.OperationalError:
        with schema.database_errors(path):
            raise
    except sqlite3.DatabaseError as error:
        return [Finding("database", f"store.sqlite cannot be read: {error}")]
    with contextlib.closing(connection):
        findings = check_database(connection, path)
        if any(found.kind == "generation" for found in findings):  # or a sleep or a change was on its way
            again = check_database(connection, path)
            findings = [found for found in findings if found in again]
        return findings


def check_database(connection: sqlite3.Connection, path: Path) -> list[Finding]:
    """What is damaged of a database, at one moment, and of the files at `path` that it vouches for."""
    findings: list[Finding] = []
    connection.execute("BEGIN")
    try:
        _look(findings, _header(connection, path))
        if not findings:  # else no row can be read rightly
            for part in (_integrity, _samples, _classes, _sums):
                _look(findings, part(connection))
            _look(findings, _settings(connection, path))
            _look(findings, _generations(connection, path))
    finally:
        connection.execute("ROLLBACK")
    return findings


def _look(findings: list[Finding], part: Iterator[Finding]) -> None:
    """Takes what a part finds; one that cannot be read at all is a finding too."""
    try:
        findings += part
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not any(found.kind == "database" for found in findings):
            findings.append(Finding("database", f"store.sqlite: {_one_line(error)}"))


def _header(connection: sqlite3.Connection, path: Path) -> Iterator[Finding]:
    """A header that says less than the tables do is damaged; what is no learner, or of another version, is refused."""
    try:
        today = schema.check_format(connection, path)
    except BadInput:
        if not schema.is_ours(connection):
            raise
        today = False
    if not today and not schema.is_ours(connection):
        raise BadInput(f"{path} was written by an older siesta: open it once, then check it")
    if not today:
        yield Finding("database", "store.sqlite: the header is damaged")
    if not schema.has_our_columns(connection):
        yield Finding("database", "store.sqlite: the description of the tables is damaged")


def _integrity(connection: sqlite3.Connection) -> Iterator[Finding]:
    for (line,) in connection.execute(f"PRAGMA integrity_check({_LINES})").fetchall():
        if line != "ok":
            yield Finding("database", f"store.sqlite: {_one_line(line)}")


def _samples(connection: sqlite3.Connection) -> Iterator[Finding]:
    for sample, checksum, codes in rows_of(connection, "codes"):
        if checksum != schema.row_checksum(sample, codes):
            yield Finding("sample", f"sample {sample}: its codes are damaged", sample)
    for sample in _ids(connection, "SELECT id FROM samples WHERE id NOT IN (SELECT id FROM codes)"):
        yield Finding("sample", f"sample {sample}: its codes are lost", sample)
    for sample in _ids(connection, "SELECT id FROM codes WHERE id NOT IN (SELECT id FROM samples)"):
        yield Finding("sample", f"sample {sample}: it is lost which class its codes belong to", sample)
    strange = "typeof(class_id) != 'integer' OR typeof(rehearsed) != 'integer' OR rehearsed < 0 OR held NOT IN (0, 1)"
    for sample in _ids(connection, f"SELECT id FROM samples WHERE {strange}"):  # noqa: S608
        yield Finding("sample", f"sample {sample}: its row is damaged", sample)


def _classes(connection: sqlite3.Connection) -> Iterator[Finding]:
    for class_id in _ids(
        connection, "SELECT DISTINCT class_id FROM samples WHERE class_id NOT IN (SELECT id FROM classes)"
    ):
        yield Finding("class", f"class {class_id}: its name is lost", class_id)
    for class_id, label, taught, stored, held in rows_of(connection, "classes"):
        if not isinstance(label, str) or not all(isinstance(count, int) for count in (taught, stored, held)):
            yield Finding("class", f"class {class_id}: its row is damaged", class_id)
            continue
        count, slots, last, kept = connection.execute(
            "SELECT count(*), count(DISTINCT slot), coalesce(max(slot) + 1, 0), coalesce(sum(held), 0)"
            " FROM samples WHERE class_id = ? AND slot >= 0",
            (class_id,),
        ).fetchone()
        if not count == slots == last == stored:
            words = f"counts {stored} stored samples where {count} are, in slots up to {last}"
            yield Finding("class", f"class '{label}': {words}", class_id)
        elif kept != held or taught < stored:
            yield Finding("class", f"class '{label}': its counts do not fit its samples", class_id)
    counters = dict(rows_of(connection, "sqlite_sequence"))
    for table in ("samples", "classes"):
        (newest,) = connection.execute(f"SELECT max(id) FROM {table}").fetchone()  # noqa: S608
        counted = counters.get(table)
        if newest is not None and (not isinstance(counted, int) or counted < newest):
            yield Finding("class", f"store.sqlite: the number of the newest of its {table} is lost")


def _sums(connection: sqlite3.Connection) -> Iterator[Finding]:
    for class_id, count, checksum, total in rows_of(connection, "recent"):
        if checksum != schema.row_checksum(class_id, total) or not isinstance(count, int) or count < 1:
            yield Finding(
                "sums", f"class {class_id}: the sums of what was taught since the last sleep are damaged", class_id
            )
    for class_id in _ids(connection, "SELECT class_id FROM recent WHERE class_id NOT IN (SELECT id FROM classes)"):
        yield Finding("sums", f"class {class_id}: there are sums, but no such class", class_id)


def _settings(connection: sqlite3.Connection, path: Path) -> Iterator[Finding]:
    try:
        hashes = read_settings(connection, path)["hashes"].items()
    except (Damaged, KeyError, AttributeError):
        yield Finding("settings", "store.sqlite: the settings are damaged")
        return
    for name, sha256 in hashes:
        if _whole(path / f"{name}.safetensors", sha256):
            continue
        if name in CAN_BE_MADE_AGAIN:
            yield Finding("cache", f"{name}.safetensors is damaged; it can be made again", name)
        else:
            yield Finding("constant", f"{name}.safetensors is damaged", name)


def _generations(connection: sqlite3.Connection, path: Path) -> Iterator[Finding]:
    kept: set[int] = set()
    for number, made, text, since, report in rows_of(connection, "generations"):
        if text == "":
            continue
        kept.add(number)
        hashes = _json(text)
        if not hashes or not _is_moment(made) or not isinstance(since, int):
            yield Finding("generation", f"generation {number}: its row is damaged", number)
            continue
        if report is not None and _json(report) is None:
            yield Finding("report", f"generation {number}: the report of its sleep is damaged", number)
        for name, sha256 in hashes.items():
            file = Path("generations", f"{number:06d}", f"{name}.safetensors")
            if not _whole(path / file, sha256):
                yield Finding("generation", f"generation {number}: {file} is damaged", number)
    used = connection.execute("SELECT generation FROM in_use").fetchone()
    if used is None or used[0] not in kept:
        yield Finding("in use", "the generation in use is not there")


def rows_of(connection: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    """Rows of a table, texts that are none as bytes."""
    connection.text_factory = decoded
    try:
        yield from connection.execute(f"SELECT * FROM {table}")  # noqa: S608
    finally:
        connection.text_factory = str


def decoded(data: bytes) -> str | bytes:
    """A text, or the bytes where damage has made it none."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _ids(connection: sqlite3.Connection, question: str) -> list[int]:
    return [row[0] for row in connection.execute(question)]


def _is_moment(text: object) -> bool:
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


def _whole(file: Path, sha256: object) -> bool:
    """Whether a file has the bytes that the database vouches for."""
    try:
        with file.open("rb") as data:
            return hashlib.file_digest(data, "sha256").hexdigest() == sha256
    except OSError:
        return False


def _one_line(words: object) -> str:
    return " ".join(str(words).split())
