"""Small pictures of the newest samples of each class, for people to look at; they are part of the byte budget."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from siesta.store.schema import database_errors

__all__ = ["Thumbnails"]

_EACH_CLASS = 12
_SHARE = 10  # of the budget, they take at most one part in so many

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
    """The table `thumbnails` of a store; a row goes with its sample, in the same transaction."""

    def __init__(self, path: Path | None, connection: sqlite3.Connection, memory_bytes: int) -> None:
        """Takes the parts of a store, and its whole budget."""
        self._path, self._connection, self._room = path, connection, memory_bytes // _SHARE

    def put(self, pictures: Mapping[int, bytes]) -> None:
        """Keeps pictures of samples by id, in the caller's transaction; the oldest of classes with most make room."""
        self._connection.executemany(_INSERT, [(picture, sample_id) for sample_id, picture in pictures.items()])
        self._connection.execute(_TRIM_CLASSES, (_EACH_CLASS,))
        self._connection.execute(_TRIM_ALL, (self._room,))

    def clear(self) -> None:
        """Removes all of them, in the caller's transaction."""
        self._connection.execute("DELETE FROM thumbnails")

    def get(self, sample_id: int) -> bytes | None:
        """The picture of a sample, if there is one."""
        with database_errors(self._path):
            row = self._connection.execute("SELECT picture FROM thumbnails WHERE id = ?", (sample_id,)).fetchone()
        return row[0] if row is not None and isinstance(row[0], bytes) else None

    def by_class(self) -> dict[int, list[int]]:
        """Ids of the samples that have one, newest first, by class id."""
        with database_errors(self._path):
            rows = self._connection.execute("SELECT class_id, id FROM thumbnails ORDER BY id DESC").fetchall()
        ids: dict[int, list[int]] = defaultdict(list)
        for class_id, sample_id in rows:
            ids[class_id].append(sample_id)
        return {class_id: some[:_EACH_CLASS] for class_id, some in ids.items()}

    def bytes(self) -> int:
        """What they count in the budget."""
        with database_errors(self._path):
            (size,) = self._connection.execute("SELECT coalesce(sum(length(picture)), 0) FROM thumbnails").fetchone()
        return int(size)
