"""Deletion that leaves no bytes of the deleted rows in any file.

A marker file is made before rows are deleted and removed once their bytes are cleared. If the process dies in
between, the next writer finds the marker and clears them.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from siesta.files import sync_folder

__all__ = ["SecureDelete"]


class SecureDelete:
    """Clears the bytes of deleted rows from the database of the store at `path`; None for a store in memory."""

    def __init__(self, path: Path | None, connection: sqlite3.Connection) -> None:
        self._marker = None if path is None else path / "to_be_wiped"
        self._connection = connection

    def begin(self) -> None:
        """Make the marker, before rows are deleted."""
        if self._marker is not None:
            self._marker.touch()
            sync_folder(self._marker.parent)

    @property
    def pending(self) -> bool:
        """Whether rows were deleted whose bytes are not cleared yet."""
        return self._marker is not None and self._marker.exists()

    def finish(self) -> None:
        """Clear freed pages, the free space of the others and the write-ahead log."""
        self._connection.execute("VACUUM")
        (busy, _, _) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if self._marker is not None and not busy:
            self._marker.unlink(missing_ok=True)
