"""Thumbnails: small images of the newest samples of each class, to be shown; they count in the byte budget."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from siesta.store.schema import database_errors

__all__ = ["Thumbnails"]

_PER_CLASS = 12
_BUDGET_SHARE = 10  # thumbnails take at most one tenth of the byte budget

_INSERT = "INSERT OR REPLACE INTO thumbnails SELECT id, class_id, ? FROM samples WHERE id = ?"
_TRIM_CLASSES = """
DELETE FROM thumbnails WHERE id IN (
    SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY class_id ORDER BY id DESC) AS place FROM thumbnails)
    WHERE place > ?
)
"""
_TRIM_ALL = """
DELETE FROM thumbnails WHERE id IN (
    SELECT id FROM (
        SELECT id, sum(length(picture)) OVER (ORDER BY place, id DESC) AS so_far FROM (
            SELECT id, picture, row_number() OVER (PARTITION BY class_id ORDER BY id DESC) AS place FROM thumbnails
        )
    )
    WHERE so_far > ?
)
"""


class Thumbnails:
    """The table `thumbnails` of a store; a row is removed in the transaction that removes its sample."""

    def __init__(self, path: Path | None, connection: sqlite3.Connection, memory_bytes: int) -> None:
        """Use the table of an open store with a budget of `memory_bytes`."""
        self._path = path
        self._connection = connection
        self._limit = memory_bytes // _BUDGET_SHARE

    def put(self, images: Mapping[int, bytes]) -> None:
        """Store images of samples by id, in the caller's transaction.

        The oldest thumbnails of the largest classes are deleted if needed.
        """
        self._connection.executemany(_INSERT, [(image, sample_id) for sample_id, image in images.items()])
        self._connection.execute(_TRIM_CLASSES, (_PER_CLASS,))
        self._connection.execute(_TRIM_ALL, (self._limit,))

    def clear(self) -> None:
        """Remove all thumbnails, in the caller's transaction."""
        self._connection.execute("DELETE FROM thumbnails")

    def get(self, sample_id: int) -> bytes | None:
        """Return the thumbnail of a sample, if there is one."""
        with database_errors(self._path):
            row = self._connection.execute("SELECT picture FROM thumbnails WHERE id = ?", (sample_id,)).fetchone()
        return row[0] if row is not None and isinstance(row[0], bytes) else None

    def by_class(self) -> dict[int, list[int]]:
        """Return the ids of the samples that have a thumbnail, newest first, by class id."""
        with database_errors(self._path):
            rows = self._connection.execute("SELECT class_id, id FROM thumbnails ORDER BY id DESC").fetchall()
        ids: dict[int, list[int]] = defaultdict(list)
        for class_id, sample_id in rows:
            ids[class_id].append(sample_id)
        return {class_id: newest_first[:_PER_CLASS] for class_id, newest_first in ids.items()}

    def total_bytes(self) -> int:
        """Return the bytes that thumbnails count in the budget."""
        with database_errors(self._path):
            (size,) = self._connection.execute("SELECT coalesce(sum(length(picture)), 0) FROM thumbnails").fetchone()
        return int(size)
