"""Rejections: images for which a label was said to be wrong, kept as codes; they count in the byte budget.

A rejection has an id of its own, given by the counter of the samples, so that no id means both.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from siesta.errors import Damaged
from siesta.store.schema import database_errors, row_checksum

__all__ = ["MOST_REJECTIONS", "RejectionTable", "rejection_is_intact"]

MOST_REJECTIONS = 256
"""Rejections that a learner keeps at most, because a prediction compares an image with all of them."""

_BUDGET_SHARE = 10  # they take at most one tenth of the byte budget


class RejectionTable:
    """The table `rejected` of a store; its changes run in the caller's transaction.

    Attributes:
        capacity: Rejections that are kept; a further one replaces the oldest.
    """

    def __init__(self, path: Path | None, connection: sqlite3.Connection, code_bytes: int, capacity: int) -> None:
        """Use the table of an open store.

        Args:
            path: The folder of the learner; None for a store in memory.
            connection: The connection to its database.
            code_bytes: Bytes of the codes of one image.
            capacity: Samples that fit into the byte budget.
        """
        self.capacity = min(max(capacity // _BUDGET_SHARE, 1), MOST_REJECTIONS)
        self._path = path
        self._connection = connection
        self._code_bytes = code_bytes

    def count(self) -> int:
        """Return the number of rejections."""
        with database_errors(self._path):
            (count,) = self._connection.execute("SELECT count(*) FROM rejected").fetchone()
        return int(count)

    def insert(self, class_id: int, codes: bytes) -> int:
        """Store a rejection of a class for an image with these codes; return its id, the known one if it is stored."""
        if len(codes) != self._code_bytes:
            raise ValueError(f"an image has {self._code_bytes} bytes of codes in this store, not {len(codes)}")
        known = self._connection.execute(
            "SELECT id FROM rejected WHERE class_id = ? AND codes = ?", (class_id, codes)
        ).fetchone()
        if known is not None:
            return int(known[0])
        row = self._connection.execute(
            "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'samples' RETURNING seq"
        ).fetchone()
        if row is None:  # no class exists before the first sample
            raise Damaged(f"{self._path}/store.sqlite has lost the number of its newest sample: run `siesta repair`")
        rejection = int(row[0])
        self._put(rejection, class_id, codes)
        self._connection.execute(
            "DELETE FROM rejected WHERE id <= (SELECT id FROM rejected ORDER BY id DESC LIMIT 1 OFFSET ?)",
            (self.capacity,),
        )
        return rejection

    def _put(self, rejection: int, class_id: int, codes: bytes) -> None:
        row = (rejection, class_id, _checksum(rejection, class_id, codes), codes)
        self._connection.execute("INSERT OR REPLACE INTO rejected VALUES (?, ?, ?, ?)", row)

    def classes(self) -> dict[int, int]:
        """Return the rejected class of each rejection, by its id, oldest first."""
        with database_errors(self._path):
            return dict(self._connection.execute("SELECT id, class_id FROM rejected ORDER BY id").fetchall())

    def get(self, ids: Iterable[int]) -> dict[int, bytes]:
        """Return the codes of those rejections that are stored, by id."""
        with database_errors(self._path):
            rows = self._connection.execute(
                "SELECT * FROM rejected WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
                (json.dumps(list(ids)),),
            ).fetchall()
        if not all(map(rejection_is_intact, rows)):
            raise Damaged(f"a rejection of {self._path} is damaged: `siesta repair` keeps the rest")
        return {row[0]: row[3] for row in rows}

    def remove(self, rejection: int) -> None:
        """Remove a rejection."""
        self._connection.execute("DELETE FROM rejected WHERE id = ?", (rejection,))

    def withdraw(self, class_id: int, codes: bytes) -> None:
        """Remove the rejections of a class for an image with these codes, which is learned as that class."""
        self._connection.execute("DELETE FROM rejected WHERE class_id = ? AND codes = ?", (class_id, codes))

    def move_class(self, class_id: int, into: int) -> None:
        """Make the rejections of one class rejections of another."""
        rows = self._connection.execute("SELECT id, codes FROM rejected WHERE class_id = ?", (class_id,)).fetchall()
        for rejection, codes in rows:
            self._put(rejection, into, codes)

    def recode(self, codes: Mapping[int, bytes]) -> None:
        """Replace the codes of rejections, by id."""
        classes = self.classes()
        for rejection, data in codes.items():
            self._put(rejection, classes[rejection], data)


def rejection_is_intact(row: tuple[Any, ...]) -> bool:
    """Whether a row of `rejected` is as it was written."""
    rejection, class_id, checksum, codes = row
    return bool(checksum == _checksum(rejection, class_id, codes))


def _checksum(rejection: object, class_id: object, codes: object) -> int:
    if not isinstance(class_id, int) or not isinstance(codes, bytes):
        return row_checksum(rejection, None)
    return row_checksum(rejection, np.int64(class_id).tobytes() + codes)
