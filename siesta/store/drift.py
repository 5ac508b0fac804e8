"""How well the codec fits the images that are taught: a running mean of its relative error."""

from __future__ import annotations

from pathlib import Path
from sqlite3 import Connection

from siesta.errors import Damaged
from siesta.store.schema import database_errors

__all__ = ["CodecDrift"]

_WINDOW = 100  # window of the running mean, in samples
_ADD = """
INSERT INTO drift VALUES (0, 1, :error) ON CONFLICT (id) DO UPDATE SET
    count = count + 1,
    error = error + (:error - error) / min(count + 1, :window)
"""


class CodecDrift:
    """The table `drift` of the store at `path`; its changes run in the caller's transaction."""

    def __init__(self, path: Path | None, connection: Connection) -> None:
        self._path = path
        self._connection = connection

    def add(self, error: float) -> None:
        """Add the relative error of one sample."""
        self._connection.execute(_ADD, {"error": error, "window": _WINDOW})

    def clear(self) -> None:
        """Delete the recorded errors."""
        self._connection.execute("DELETE FROM drift")

    def read(self) -> tuple[int, float]:
        """Return the number of measured samples, and the mean error of about the last hundred; 0 without any."""
        with database_errors(self._path):
            row = self._connection.execute("SELECT count, error FROM drift").fetchone()
        try:
            return (0, 0.0) if row is None else (int(row[0]), float(row[1]))
        except (TypeError, ValueError) as error:
            raise Damaged("the measured error of the codec is damaged: `siesta repair` removes it") from error
