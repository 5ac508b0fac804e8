"""The statistics of a discriminant head: sums over the counted samples, and the z of samples that were counted later.

The sums are over the power-normalised z. A sample that is counted after they were computed is stored as a row with its
z, because a matrix of megabytes would have to be rewritten otherwise; `fold` moves the oldest rows into the sums. The
rows change in the caller's transaction.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.contracts import Ids
from siesta.errors import Damaged
from siesta.store.schema import database_errors, row_checksum

__all__ = [
    "Arrays",
    "CountedSamples",
    "StatisticsTable",
    "StoredStatistics",
    "counted_is_intact",
    "sums_are_intact",
]

Arrays = Mapping[str, npt.NDArray[Any]]
"""`class_ids` (K,), `counts` (K,), `sums` (K, D), and `gram`, the upper triangle of the matrix, empty if it is zero."""


@dataclass(frozen=True)
class CountedSamples:
    """Samples that were counted after the sums were computed: ids (B,), class ids (B,) and z (B, D)."""

    ids: Ids
    classes: npt.NDArray[np.int64]
    features: npt.NDArray[np.float32]


@dataclass(frozen=True)
class StoredStatistics:
    """The statistics as of one moment, or their changes since an earlier `read`.

    Attributes:
        number: Number of the sums, which changes whenever they are replaced; None if there are no statistics.
        arrays: The sums; None if they have not changed since the earlier `read`.
        since: Samples that were counted after the sums were computed, or after the earlier `read`.
    """

    number: int | None
    arrays: Arrays | None
    since: CountedSamples


class StatisticsTable:
    """The tables `gram`, `class_sums` and `counted_since` of a store."""

    def __init__(self, path: Path | None, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    def number(self) -> int | None:
        """Return the number of the sums; None if there are none."""
        row = self._connection.execute("SELECT number FROM gram").fetchone()
        return None if row is None else int(row[0])

    def total_bytes(self) -> int:
        """Return the bytes of all statistics."""
        with database_errors(self._path):
            (total,) = self._connection.execute(
                "SELECT coalesce((SELECT sum(length(total)) FROM gram), 0)"
                " + coalesce((SELECT sum(length(total)) FROM class_sums), 0)"
                " + coalesce((SELECT sum(length(feature)) FROM counted_since), 0)"
            ).fetchone()
        return int(total)

    def read(self, number: int | None = None, newest: int = 0) -> StoredStatistics:
        """Return the statistics.

        Args:
            number: Number of the sums that the caller has from an earlier `read`, if any.
            newest: Id of the newest sample that the caller has counted.
        """
        with database_errors(self._path):
            current = self.number()
            if current is None:
                return StoredStatistics(None, None, _no_samples())
            if current == number:
                return StoredStatistics(current, None, self._since(newest))
            return StoredStatistics(current, self._arrays(), self._since(0))

    def _arrays(self) -> Arrays:
        rows = self._connection.execute("SELECT * FROM class_sums ORDER BY class_id").fetchall()
        ((_, number, checksum, gram),) = self._connection.execute("SELECT * FROM gram").fetchall()
        self._connection.execute("PRAGMA shrink_memory")  # else the pages of the matrix stay in SQLite's cache
        if not sums_are_intact(number, checksum, gram, rows):
            raise self._damaged()
        return {
            "class_ids": np.array([row[0] for row in rows], dtype=np.int64),
            "counts": np.array([row[1] for row in rows], dtype=np.int64),
            "sums": np.array([np.frombuffer(row[3]) for row in rows]),
            "gram": np.frombuffer(gram),
        }

    def _since(self, newest: int) -> CountedSamples:
        rows = self._connection.execute(
            "SELECT * FROM counted_since WHERE sample_id > ? ORDER BY sample_id", (newest,)
        ).fetchall()
        if not rows:
            return _no_samples()
        if not all(map(counted_is_intact, rows)):
            raise self._damaged()
        ids, classes = (np.array([row[column] for row in rows], dtype=np.int64) for column in (0, 1))
        return CountedSamples(ids, classes, np.stack([np.frombuffer(row[3], dtype=np.float32) for row in rows]))

    def _damaged(self) -> Damaged:
        return Damaged(f"the statistics of {self._path} are damaged: `siesta repair` rebuilds them")

    def count(self, sample_id: int, class_id: int, feature: npt.NDArray[np.float32]) -> None:
        """Count a stored sample with its z (D,)."""
        data = np.ascontiguousarray(feature, dtype=np.float32).tobytes()
        checksum = _checksum(sample_id, [class_id], data)
        self._connection.execute("INSERT INTO counted_since VALUES (?, ?, ?, ?)", (sample_id, class_id, checksum, data))
        self._connection.execute("UPDATE samples SET counted = 1 WHERE id = ?", (sample_id,))

    def replace(self, arrays: Arrays, counted: Ids) -> None:
        """Replace all statistics by sums over the samples `counted`."""
        number = self.number()
        self.clear()
        self._connection.executemany(
            "UPDATE samples SET counted = 1 WHERE id = ?", [(one,) for one in counted.tolist()]
        )
        self._put(arrays, arrays["class_ids"].tolist(), number)

    def edit(self, arrays: Arrays) -> None:
        """Replace all sums after an edit of stored samples; they include the samples that were counted since."""
        number = self.number()
        self._connection.execute("DELETE FROM counted_since")
        self._connection.execute("DELETE FROM class_sums")
        self._put(arrays, arrays["class_ids"].tolist(), number)

    def fold(self, arrays: Arrays, samples: int) -> int:
        """Replace the sums by those that include the oldest samples counted since; return the new number."""
        changed = self._connection.execute(
            "DELETE FROM counted_since WHERE sample_id IN"
            " (SELECT sample_id FROM counted_since ORDER BY sample_id LIMIT ?) RETURNING class_id",
            (samples,),
        ).fetchall()
        return self._put(arrays, {class_id for (class_id,) in changed}, self.number())

    def _put(self, arrays: Arrays, changed: Iterable[int], previous: int | None) -> int:
        """Write the matrix, and the sums of the classes `changed`; return the new number of the sums."""
        number = (previous or 0) + 1
        rows = {int(class_id): row for row, class_id in enumerate(arrays["class_ids"])}
        for class_id in changed:
            data = arrays["sums"][rows[class_id]].tobytes()
            self._connection.execute(
                "INSERT OR REPLACE INTO class_sums VALUES (?, ?, ?, ?)",
                (class_id, int(arrays["counts"][rows[class_id]]), row_checksum(class_id, data), data),
            )
        gram = arrays["gram"].tobytes()
        checksum = _sums_checksum(number, gram, zip(rows, arrays["counts"].tolist(), strict=True))
        self._connection.execute("INSERT OR REPLACE INTO gram VALUES (0, ?, ?, ?)", (number, checksum, gram))
        return number

    def clear(self) -> None:
        """Remove all statistics."""
        for table in ("gram", "class_sums", "counted_since"):
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608
        self._connection.execute("UPDATE samples SET counted = 0 WHERE counted")


def sums_are_intact(number: object, checksum: object, gram: object, rows: Iterable[tuple[Any, ...]]) -> bool:
    """Whether the row of `gram`, and all rows of `class_sums`, are as they were written, and none is missing."""
    rows = list(rows)
    if any(row[2] != row_checksum(row[0], row[3]) for row in rows):
        return False
    return checksum == _sums_checksum(number, gram, ((row[0], row[1]) for row in rows))


def counted_is_intact(row: tuple[Any, ...]) -> bool:
    """Whether a row of `counted_since` is as it was written."""
    sample_id, class_id, checksum, feature = row
    return bool(checksum == _checksum(sample_id, [class_id], feature))


def _sums_checksum(number: object, gram: object, counts: Iterable[tuple[object, object]]) -> int:
    """Return a checksum of the matrix, its number, and the class ids and counts of all sums."""
    pairs = sorted(counts, key=str)
    return _checksum(0, [number, *(value for pair in pairs for value in pair)], gram)


def _checksum(row_id: object, numbers: list[object], data: object) -> int:
    """Return a checksum of numbers and data, which may be large, under an id; -1 if damage has changed their types."""
    if not isinstance(data, bytes) or not all(isinstance(number, int) for number in numbers):
        return -1
    return zlib.crc32(data, row_checksum(row_id, np.array(numbers, dtype=np.int64).tobytes()))


def _no_samples() -> CountedSamples:
    return CountedSamples(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 0), np.float32))
