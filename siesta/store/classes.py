"""Classes of a learner: their names and counts, and the sums of what was taught of them since the last sleep."""

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

__all__ = ["ClassRecord", "Classes", "Recent", "RunningSums"]

_INSERT_SUM = "INSERT OR REPLACE INTO recent VALUES (?, ?, ?, ?)"


@dataclass(frozen=True)
class ClassRecord:
    """A class and how many samples of it were ever taught and are still stored."""

    id: int
    label: str
    taught: int
    stored: int


@dataclass(frozen=True)
class Recent:
    """What was taught of a class since the last sleep: how many samples, and the sum of their z."""

    class_id: int
    label: str
    count: int
    total: npt.NDArray[np.float64]


class Classes:
    """The tables `classes` and `recent` of a store at `path`; what changes them runs in the caller's transaction."""

    def __init__(self, path: Path | None, connection: sqlite3.Connection) -> None:
        self._path, self._connection = path, connection

    def all(self) -> list[ClassRecord]:
        """All classes, oldest first."""
        with database_errors(self._path):
            rows = self._connection.execute("SELECT id, label, taught, stored FROM classes ORDER BY id").fetchall()
        return [ClassRecord(*row) for row in rows]

    def named(self, label: str) -> ClassRecord:
        """The class of a label."""
        for record in self.all():
            if record.label == label:
                return record
        raise BadInput(f"there is no class '{label}': `siesta info` lists them")

    def id_of(self, label: str) -> int:
        """The id of a label; a new one gets the next."""
        row = self._connection.execute("SELECT id FROM classes WHERE label = ?", (label,)).fetchone()
        if row is None:
            row = self._connection.execute(
                "INSERT INTO classes (label, taught, stored) VALUES (?, 0, 0) RETURNING id", (label,)
            ).fetchone()
        return int(row[0])

    def drop(self, class_id: int) -> None:
        """Removes a class and its sums."""
        self._connection.execute("DELETE FROM recent WHERE class_id = ?", (class_id,))
        self._connection.execute("DELETE FROM classes WHERE id = ?", (class_id,))

    def recent(self, class_ids: Iterable[int]) -> list[Recent]:
        """What was taught of some classes since the last sleep; those of which nothing was are left out."""
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
            Recent(class_id, label, count, np.frombuffer(total, dtype=np.float64))
            for class_id, label, count, _, total in rows
        ]

    def put_sum(self, class_id: int, count: int, total: npt.NDArray[np.float64]) -> None:
        """Writes what was taught of a class since the last sleep; nothing, for a count of zero."""
        self._connection.execute("DELETE FROM recent WHERE class_id = ?", (class_id,))
        if count:
            data = total.tobytes()
            self._connection.execute(_INSERT_SUM, (class_id, count, row_checksum(class_id, data), data))

    def clear_sums(self) -> None:
        """Nothing was taught since the last sleep."""
        self._connection.execute("DELETE FROM recent")


class RunningSums:
    """Sums of one transaction: each class read once and written once."""

    def __init__(self, classes: Classes) -> None:
        self._classes = classes
        self._open: dict[int, tuple[int, npt.NDArray[np.float64]]] = {}

    def add(self, class_id: int, feature: npt.NDArray[np.float32]) -> None:
        """Counts one sample's z in."""
        count, total = self._open.get(class_id) or self._read(class_id, len(feature))
        self._open[class_id] = (count + 1, total + feature)

    def _read(self, class_id: int, width: int) -> tuple[int, npt.NDArray[np.float64]]:
        for recent in self._classes.recent([class_id]):  # its checksum is right: written back, it would look so
            return recent.count, recent.total
        return 0, np.zeros(width)

    def write(self) -> None:
        """Puts them all in the store."""
        for class_id, (count, total) in self._open.items():
            self._classes.put_sum(class_id, count, total)
