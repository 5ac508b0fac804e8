"""What is forgotten leaves no bytes in a file: promised before it is deleted, and kept after, if need be by others."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from siesta.errors import DiskRefused
from siesta.store import files

__all__ = ["Wipe"]


class Wipe:
    """Of the database of a store; with `path` None there is no file."""

    def __init__(self, path: Path | None, connection: sqlite3.Connection) -> None:
        self._mark = None if path is None else path / "to_be_wiped"
        self._connection = connection

    def promise(self) -> None:
        """Leaves a mark that outlives this process."""
        if self._mark is not None:
            self._mark.touch()
            files.sync_folder(self._mark.parent)

    @property
    def promised(self) -> bool:
        """Whether somebody died, or had no room, before it was kept."""
        return self._mark is not None and self._mark.exists()

    def keep(self) -> None:
        """Clears pages that were freed, rests of rows in others, and the log."""
        try:
            self._connection.execute("VACUUM")
            (busy, _, _) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.OperationalError as error:
            raise DiskRefused(
                f"it is forgotten, but its bytes could not be cleared ({error}): "
                "free some room, and they will be when the learner is taught again"
            ) from error
        if self._mark is not None and not busy:
            self._mark.unlink(missing_ok=True)
