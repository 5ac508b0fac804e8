"""The settings of a learner: JSON values in a table of their own, and a checksum over all of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from siesta.errors import Damaged
from siesta.store.schema import row_checksum

__all__ = ["read_settings", "write_settings"]

_CHECKSUM = "checksum"


def write_settings(connection: sqlite3.Connection, settings: Mapping[str, Any]) -> None:
    """Takes the place of all that were there, in the caller's transaction."""
    rows = {name: json.dumps(value) for name, value in settings.items()}
    rows[_CHECKSUM] = str(_sum(rows))
    connection.execute("DELETE FROM settings")
    connection.executemany("INSERT INTO settings VALUES (?, ?)", list(rows.items()))


def read_settings(connection: sqlite3.Connection, path: Path | None) -> dict[str, Any]:
    """All settings; a learner of old has no checksum of them."""
    lost = Damaged(f"{path}/store.sqlite has lost its settings: restore it from a copy of the learner")
    rows = dict(connection.execute("SELECT name, value FROM settings").fetchall())
    if not all(isinstance(text, str) for pair in rows.items() for text in pair):
        raise lost
    kept = rows.pop(_CHECKSUM, None)
    if kept is not None and kept != str(_sum(rows)):
        raise lost
    try:
        settings = {name: json.loads(value) for name, value in rows.items()}
        int(settings["code_bytes"]), int(settings["memory_bytes"])
    except (KeyError, TypeError, ValueError) as error:
        raise lost from error
    return settings


def _sum(rows: Mapping[str, str]) -> int:
    return row_checksum(0, json.dumps(sorted(rows.items())).encode())
