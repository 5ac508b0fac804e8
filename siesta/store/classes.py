"""The classes of a learner: labels and counts, and the sums of what was taught of them since the last sleep."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput, Damaged
from siesta.store.schema import database_errors, row_checksum

__all__ = ["ClassRecord", "Classes", "RecentSum", "RunningSums"]

_INSERT_SUM = "INSERT OR REPLACE INTO recent VALUES (?, ?, ?, ?)"


@dataclass(frozen=True)
class ClassRecord:
    """A class, and the numbers of its samples that were ever taught and are still stored."""

    id: int
    label: str
    taught: int
    stored: int


@dataclass(frozen=True)
class RecentSum:
    """Count and sum of z (D,) of the samples of a class that were taught since the last sleep."""

    class_id: int
    label: str
    count: int
    total: npt.NDArray[np.float64]


class Classes:
    """The tables `classes` and `recent` of the store at `path`; their changes run in the caller's transaction."""

    def __init__(self, path: Path | None, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    def all(self) -> list[ClassRecord]:
        """Return all classes, oldest first."""
        with database_errors(self._path):
            rows = self._connection.execute("SELECT id, label, taught, stored FROM classes ORDER BY id").fetchall()
        return [ClassRecord(*row) for row in rows]

    def sizes(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the ids of all classes, oldest first, and the number of stored samples of each, both (K,)."""
        records = self.all()
        ids = np.array([record.id for record in records], dtype=np.int64)
        return ids, np.array([record.stored for record in records], dtype=np.int64)

    def named(self, label: str) -> ClassRecord:
        """Return the class with a label."""
        for record in self.all():
            if record.label == label:
                return record
        raise BadInput(f"there is no class '{label}': `siesta info` lists them")

    def id_of(self, label: str) -> int:
        """Return the id of the class with a label; a new label gets the next id."""
        row = self._connection.execute("SELECT id FROM classes WHERE label = ?", (label,)).fetchone()
        if row is None:
            row = self._connection.execute(
                "INSERT INTO classes (label, taught, stored) VALUES (?, 0, 0) RETURNING id", (label,)
            ).fetchone()
        return int(row[0])

    def rename(self, class_id: int, label: str) -> None:
        """Change the label of a class."""
        self._connection.execute("UPDATE classes SET label = ? WHERE id = ?", (label, class_id))

    def add_counts(self, class_id: int, taught: int, stored: int) -> None:
        """Add to the numbers of taught and stored samples of a class."""
        self._connection.execute(
            "UPDATE classes SET taught = taught + ?, stored = stored + ? WHERE id = ?", (taught, stored, class_id)
        )

    def drop(self, class_id: int) -> None:
        """Remove a class, its sum and its rejections."""
        self._connection.execute("DELETE FROM recent WHERE class_id = ?", (class_id,))
        self._connection.execute("DELETE FROM rejected WHERE class_id = ?", (class_id,))
        self._connection.execute("DELETE FROM classes WHERE id = ?", (class_id,))

    def recent(self, class_ids: Iterable[int]) -> list[RecentSum]:
        """Return the sums of classes of which samples were taught since the last sleep."""
        with database_errors(self._path):
            rows = self._connection.execute(
                "SELECT class_id, label, count, checksum, total FROM recent JOIN classes ON id = class_id"
                " WHERE class_id IN (SELECT value FROM json_each(?)) ORDER BY class_id",
                (json.dumps(list(class_ids)),),
            ).fetchall()
        for class_id, label, _, checksum, total in rows:
            if checksum != row_checksum(class_id, total):
                raise Damaged(f"the sums of class '{label}' of {self._path} are damaged: `siesta repair` rebuilds them")
        return [
            RecentSum(class_id, label, count, np.frombuffer(total, dtype=np.float64))
            for class_id, label, count, _, total in rows
        ]

    def since_sleep(self) -> tuple[int, int]:
        """Return how many classes took part in no sleep, and how many samples were taught since the last one."""
        with database_errors(self._path):
            row = self._connection.execute(
                "SELECT coalesce(sum(taught = count), 0), coalesce(sum(count), 0)"
                " FROM classes JOIN recent ON id = class_id"
            ).fetchone()
        return int(row[0]), int(row[1])

    def put_sum(self, class_id: int, count: int, total: npt.NDArray[np.float64]) -> None:
        """Replace the sum of a class; a count of zero removes it."""
        self._connection.execute("DELETE FROM recent WHERE class_id = ?", (class_id,))
        if count:
            data = total.tobytes()
            self._connection.execute(_INSERT_SUM, (class_id, count, row_checksum(class_id, data), data))

    def clear_sums(self) -> None:
        """Remove the sums of all classes."""
        self._connection.execute("DELETE FROM recent")


class RunningSums:
    """Additions to the sums of one transaction: each class is read once and written once."""

    def __init__(self, classes: Classes) -> None:
        self._classes = classes
        self._sums: dict[int, tuple[int, npt.NDArray[np.float64]]] = {}

    def add(self, class_id: int, feature: npt.NDArray[np.float32]) -> None:
        """Add the z (D,) of one sample."""
        count, total = self._sums.get(class_id) or self._read(class_id, len(feature))
        self._sums[class_id] = (count + 1, total + feature)

    def _read(self, class_id: int, width: int) -> tuple[int, npt.NDArray[np.float64]]:
        for recent in self._classes.recent([class_id]):  # checks the checksum: a damaged sum must not be written back
            return recent.count, recent.total
        return 0, np.zeros(width)

    def write(self) -> None:
        """Write the new sums."""
        for class_id, (count, total) in self._sums.items():
            self._classes.put_sum(class_id, count, total)
