"""The settings of a learner: JSON values in a table, with a checksum over all of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from siesta.errors import Damaged
from siesta.store.schema import FORMAT, FORMAT_SETTING, row_checksum

__all__ = ["read_settings", "write_settings"]

_CHECKSUM = "checksum"


def write_settings(connection: sqlite3.Connection, settings: Mapping[str, Any]) -> None:
    """Replace all settings, in the caller's transaction."""
    rows = {name: json.dumps(value) for name, value in settings.items()}
    rows[FORMAT_SETTING] = str(FORMAT)
    rows[_CHECKSUM] = str(_checksum(rows))
    connection.execute("DELETE FROM settings")
    connection.executemany("INSERT INTO settings VALUES (?, ?)", list(rows.items()))


def read_settings(connection: sqlite3.Connection, path: Path | None) -> dict[str, Any]:
    """Return all settings, after verifying their checksum; learners of early versions have none."""
    lost = Damaged(f"{path}/store.sqlite has lost its settings: restore it from a copy of the learner")
    rows = dict(connection.execute("SELECT name, value FROM settings").fetchall())
    if not all(isinstance(text, str) for pair in rows.items() for text in pair):
        raise lost
    recorded = rows.pop(_CHECKSUM, None)
    if recorded is not None and recorded != str(_checksum(rows)):
        raise lost
    rows.pop(FORMAT_SETTING, None)
    try:
        settings = {name: json.loads(value) for name, value in rows.items()}
        int(settings["code_bytes"])
        int(settings["memory_bytes"])
    except (KeyError, TypeError, ValueError) as error:
        raise lost from error
    return settings


def _checksum(rows: Mapping[str, str]) -> int:
    return row_checksum(0, json.dumps(sorted(rows.items())).encode())
