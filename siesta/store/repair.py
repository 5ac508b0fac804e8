"""Repair of the rows of a damaged learner: intact rows stay, and everything that is lost is reported."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from siesta.store import schema
from siesta.store.check import NEWEST_IDS, Finding, read_table
from siesta.store.statistics import StatisticsTable

__all__ = ["name_lost_class", "repair_rows"]


def repair_rows(connection: sqlite3.Connection, findings: Iterable[Finding]) -> list[str]:
    """Remove damaged rows and correct counts and slots, in one transaction; return a line for each loss.

    Afterwards the sums of some classes may be missing, and the active generation may be one that is no longer kept.
    The caller, which has the network, restores both.

    Args:
        connection: A connection to a database in which SQLite's own check finds no damage.
        findings: What `check_database` found in it.
    """
    findings = list(findings)
    with schema.Transaction(connection):
        lines = _remove_samples(connection, {found.item for found in findings if found.kind == "sample"})
        lines += _name_lost_classes(connection)
        lines += _correct_counts(connection)
        if any(found.kind == "statistics" for found in findings):
            StatisticsTable(None, connection).clear()  # the caller, which has the network, computes them anew
        sums = {found.item for found in findings if found.kind == "sums"}
        connection.executemany("DELETE FROM recent WHERE class_id = ?", [(item,) for item in sums])
        lines += _drop_generations(connection, {found.item for found in findings if found.kind == "generation"})
        lines += _drop_reports(connection, {found.item for found in findings if found.kind == "report"})
        lines += _remove_rejections(connection, {found.item for found in findings if found.kind == "rejection"})
        lines += _remove_edits(connection, {found.item for found in findings if found.kind == "edit"})
        if any(found.kind == "drift" for found in findings):
            connection.execute("DELETE FROM drift")
            lines.append("the measured error of the codec is lost")
        lines += _correct_counters(connection)
        if any(found.kind == "header" for found in findings):
            connection.execute(f"PRAGMA user_version = {schema.FORMAT}")
            lines.append("corrected the format in the header of store.sqlite")
    return lines


def _remove_samples(connection: sqlite3.Connection, damaged: set[int | str | None]) -> list[str]:
    for table in ("samples", "codes", "thumbnails"):
        connection.executemany(f"DELETE FROM {table} WHERE id = ?", [(sample,) for sample in damaged])  # noqa: S608
    return [f"removed sample {sample}: it is damaged" for sample in sorted(damaged, key=str)]


def _drop_generations(connection: sqlite3.Connection, damaged: set[int | str | None]) -> list[str]:
    """Remove the hashes of damaged generations, so that their files are deleted."""
    statement = "UPDATE generations SET hashes = '' WHERE number = ?"
    connection.executemany(statement, [(number,) for number in damaged])
    return [f"removed generation {number}: it is damaged" for number in sorted(damaged, key=str)]


def _drop_reports(connection: sqlite3.Connection, damaged: set[int | str | None]) -> list[str]:
    connection.executemany("UPDATE generations SET report = NULL WHERE number = ?", [(number,) for number in damaged])
    return [f"the report of the sleep that made generation {number} is lost" for number in sorted(damaged, key=str)]


def _remove_rejections(connection: sqlite3.Connection, damaged: set[int | str | None]) -> list[str]:
    connection.executemany("DELETE FROM rejected WHERE id = ?", [(rejection,) for rejection in damaged])
    return [f"removed rejection {rejection}: it is damaged" for rejection in sorted(damaged, key=str)]


def _remove_edits(connection: sqlite3.Connection, damaged: set[int | str | None]) -> list[str]:
    connection.executemany("DELETE FROM audit WHERE id = ?", [(number,) for number in damaged])
    return [f"the record of edit {number} is lost" for number in sorted(damaged, key=str)]


def _name_lost_classes(connection: sqlite3.Connection) -> list[str]:
    """Give new labels to classes that have lost theirs: their samples still belong together."""
    damaged = [
        row[0]
        for row in read_table(connection, "classes")
        if not isinstance(row[1], str) or not all(isinstance(count, int) and count >= 0 for count in row[2:])
    ]
    lost = connection.execute("SELECT DISTINCT class_id FROM samples WHERE class_id NOT IN (SELECT id FROM classes)")
    return [name_lost_class(connection, class_id) for class_id in [row[0] for row in lost.fetchall()] + damaged]


def name_lost_class(connection: sqlite3.Connection, class_id: int) -> str:
    """Give a new label to a class that has lost its own, or its row; return a line about it."""
    row = connection.execute("SELECT CAST(label AS BLOB) FROM classes WHERE id = ?", (class_id,)).fetchone()
    first_choice = f"lost class {class_id}"
    if row is not None and row[0]:
        first_choice = bytes(row[0]).decode("utf-8", "replace") or first_choice
    label = first_choice
    number = 1
    while connection.execute("SELECT 1 FROM classes WHERE label = ? AND id != ?", (label, class_id)).fetchone():
        number += 1
        label = f"{first_choice} ({number})"
    connection.execute("INSERT OR REPLACE INTO classes VALUES (?, ?, 0, 0, 0)", (class_id, label))
    return f"class {class_id} was damaged: it is called '{label}' now"


def _correct_counts(connection: sqlite3.Connection) -> list[str]:
    """Close gaps in the slots, and set the counts of classes to those of their samples."""
    lines = []
    for class_id, label, taught, stored, held in connection.execute("SELECT * FROM classes ORDER BY id").fetchall():
        rows = connection.execute("SELECT id, slot, held FROM samples WHERE class_id = ? ORDER BY slot", (class_id,))
        samples = rows.fetchall()
        gaps = [slot for _, slot, _ in samples] != list(range(len(samples)))
        if gaps:
            _number_slots(connection, [sample for sample, _, _ in samples])
        correct = max(taught, len(samples)), len(samples), sum(kept > 0 for _, _, kept in samples)
        if correct != (taught, stored, held):
            connection.execute("UPDATE classes SET taught = ?, stored = ?, held = ? WHERE id = ?", (*correct, class_id))
        if len(samples) < stored:
            lines.append(f"class '{label}' has lost {stored - len(samples)} of its {stored} samples")
        elif correct != (taught, stored, held) or gaps:
            lines.append(f"corrected the counts of class '{label}'")
    return lines


def _number_slots(connection: sqlite3.Connection, samples: list[int]) -> None:
    """Number the slots of a class; in two steps, because no two samples may ever have the same slot."""
    statement = "UPDATE samples SET slot = ? WHERE id = ?"
    connection.executemany(statement, [(-1 - slot, sample) for slot, sample in enumerate(samples)])
    connection.executemany(statement, [(slot, sample) for slot, sample in enumerate(samples)])


def _correct_counters(connection: sqlite3.Connection) -> list[str]:
    """Correct the counters of ids, so that no id of a sample or class is given twice."""
    lines = []
    counters = dict(read_table(connection, "sqlite_sequence"))
    for table, query in NEWEST_IDS.items():
        (newest,) = connection.execute(query).fetchone()
        counted = counters.pop(table, None)
        if newest and (not isinstance(counted, int) or counted < newest):
            connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            connection.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, newest))
            lines.append(f"set the newest id of {table} to {newest}")
    connection.executemany("DELETE FROM sqlite_sequence WHERE name = ?", [(name,) for name in counters])
    return lines
