"""Makes the rows of a damaged learner fit each other again: what is whole stays, what is lost is said."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from siesta.store import schema
from siesta.store.check import Finding, rows_of

__all__ = ["mend", "name_lost_class"]


def mend(connection: sqlite3.Connection, findings: Iterable[Finding]) -> list[str]:
    """Removes what is damaged and makes counts and slots right, in one transaction; returns what was lost.

    Afterwards the sums of some classes may be missing and the generation in use may be one that is no longer kept:
    whoever knows the network has to see to that.

    Args:
        connection: To a database that SQLite finds nothing wrong with.
        findings: What was found in it.
    """
    findings = list(findings)
    with schema.transaction(connection):
        lines = _remove_samples(connection, {found.item for found in findings if found.kind == "sample"})
        lines += _name_classes(connection)
        lines += _count_classes(connection)
        sums = {found.item for found in findings if found.kind == "sums"}
        connection.executemany("DELETE FROM recent WHERE class_id = ?", [(item,) for item in sums])
        lines += _let_go(connection, {found.item for found in findings if found.kind == "generation"})
        lines += _forget_reports(connection, {found.item for found in findings if found.kind == "report"})
        lines += _set_newest(connection)
    return lines


def _remove_samples(connection: sqlite3.Connection, damaged: set[int | str | None]) -> list[str]:
    for table in ("samples", "codes", "thumbnails"):
        connection.executemany(f"DELETE FROM {table} WHERE id = ?", [(sample,) for sample in damaged])  # noqa: S608
    return [f"removed sample {sample}: it is damaged" for sample in sorted(damaged, key=str)]


def _let_go(connection: sqlite3.Connection, damaged: set[int | str | None]) -> list[str]:
    """Vouches no longer for damaged generations."""
    change = "UPDATE generations SET hashes = '' WHERE number = ?"
    connection.executemany(change, [(number,) for number in damaged])
    return [f"removed generation {number}: it is damaged" for number in sorted(damaged, key=str)]


def _forget_reports(connection: sqlite3.Connection, damaged: set[int | str | None]) -> list[str]:
    connection.executemany("UPDATE generations SET report = NULL WHERE number = ?", [(number,) for number in damaged])
    return [f"the report of the sleep that made generation {number} is lost" for number in sorted(damaged, key=str)]


def _name_classes(connection: sqlite3.Connection) -> list[str]:
    """Gives a name to classes that have lost theirs: their samples still belong together."""
    damaged = [
        row[0]
        for row in rows_of(connection, "classes")
        if not isinstance(row[1], str) or not all(isinstance(count, int) and count >= 0 for count in row[2:])
    ]
    lost = connection.execute("SELECT DISTINCT class_id FROM samples WHERE class_id NOT IN (SELECT id FROM classes)")
    return [name_lost_class(connection, class_id) for class_id in [row[0] for row in lost.fetchall()] + damaged]


def name_lost_class(connection: sqlite3.Connection, class_id: int) -> str:
    """A name for a class that has lost its own, or its row; returns what is to be said about it."""
    row = connection.execute("SELECT CAST(label AS BLOB) FROM classes WHERE id = ?", (class_id,)).fetchone()
    label = f"lost class {class_id}"
    if row is not None and row[0]:
        label = bytes(row[0]).decode("utf-8", "replace") or label
    while connection.execute("SELECT 1 FROM classes WHERE label = ? AND id != ?", (label, class_id)).fetchone():
        label += " again"
    connection.execute("INSERT OR REPLACE INTO classes VALUES (?, ?, 0, 0, 0)", (class_id, label))
    return f"class {class_id} was damaged: it is called '{label}' now"


def _count_classes(connection: sqlite3.Connection) -> list[str]:
    """Slots without gaps, and counts that fit the samples."""
    lines = []
    for class_id, label, taught, stored, held in connection.execute("SELECT * FROM classes ORDER BY id").fetchall():
        rows = connection.execute("SELECT id, slot, held FROM samples WHERE class_id = ? ORDER BY slot", (class_id,))
        samples = rows.fetchall()
        gaps = [slot for _, slot, _ in samples] != list(range(len(samples)))
        if gaps:
            _number_slots(connection, [sample for sample, _, _ in samples])
        right = max(taught, len(samples)), len(samples), sum(kept for _, _, kept in samples)
        if right != (taught, stored, held):
            connection.execute("UPDATE classes SET taught = ?, stored = ?, held = ? WHERE id = ?", (*right, class_id))
        if len(samples) < stored:
            lines.append(f"class '{label}' has lost {stored - len(samples)} of its {stored} samples")
        elif right != (taught, stored, held) or gaps:
            lines.append(f"the counts of class '{label}' were made right")
    return lines


def _number_slots(connection: sqlite3.Connection, samples: list[int]) -> None:
    """In two steps, for no two samples of a class may share a slot at any time."""
    change = "UPDATE samples SET slot = ? WHERE id = ?"
    connection.executemany(change, [(-1 - slot, sample) for slot, sample in enumerate(samples)])
    connection.executemany(change, [(slot, sample) for slot, sample in enumerate(samples)])


def _set_newest(connection: sqlite3.Connection) -> list[str]:
    """No number of a sample or class is given twice."""
    lines = []
    counters = dict(rows_of(connection, "sqlite_sequence"))
    for table in ("samples", "classes"):
        (newest,) = connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()  # noqa: S608
        counted = counters.pop(table, None)
        if newest and (not isinstance(counted, int) or counted < newest):
            connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            connection.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, newest))
            lines.append(f"the newest of the {table} is taken to be {newest}")
    connection.executemany("DELETE FROM sqlite_sequence WHERE name = ?", [(name,) for name in counters])
    return lines
