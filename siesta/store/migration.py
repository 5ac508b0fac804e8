"""Migration of the database of an older version to the current format."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from siesta.store import schema
from siesta.store.settings import read_settings, write_settings
from siesta.store.tables import REJECTED_TABLE, STATISTICS_TABLES

__all__ = ["migrate"]

# the newest row was the one in use, ids of samples have no gaps, and what was taught since the last sleep came last
_FROM_1 = """
ALTER TABLE classes ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE samples ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE generations RENAME TO generations_1;
CREATE TABLE generations (
    number INTEGER PRIMARY KEY,
    made TEXT NOT NULL,
    hashes TEXT NOT NULL,
    since INTEGER NOT NULL,
    report TEXT
);
INSERT INTO generations SELECT
    number,
    made,
    CASE number WHEN (SELECT max(number) FROM generations_1) THEN hashes ELSE '' END,
    (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'samples')
        - (SELECT coalesce(sum(count), 0) FROM recent),
    report
FROM generations_1;
DROP TABLE generations_1;
CREATE TABLE in_use (id INTEGER PRIMARY KEY CHECK (id = 0), generation INTEGER NOT NULL);
INSERT INTO in_use SELECT 0, max(number) FROM generations;
CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT, made TEXT NOT NULL, what TEXT NOT NULL);
CREATE TABLE drift (id INTEGER PRIMARY KEY CHECK (id = 0), count INTEGER NOT NULL, error REAL NOT NULL);
"""

_FROM_2 = """
CREATE TABLE thumbnails (id INTEGER PRIMARY KEY, class_id INTEGER NOT NULL, picture BLOB NOT NULL);
CREATE INDEX thumbnails_by_class ON thumbnails (class_id, id);
"""
_FROM_3 = "ALTER TABLE samples ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;" + STATISTICS_TABLES
_MIGRATIONS = {1: _FROM_1, 2: _FROM_2, 3: _FROM_3, 4: REJECTED_TABLE}


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Migrate the database of the learner at `path` to the current format, in one transaction.

    The settings are written again, so that they repeat the format, and a version that reads older ones refuses it.
    """
    with schema.Transaction(connection):
        older = schema.format_of_tables(connection) or schema.FORMAT
        if older == schema.FORMAT:  # another process was faster
            return
        for number in range(older, schema.FORMAT):
            for statement in _MIGRATIONS[number].split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {schema.FORMAT}")
        write_settings(connection, read_settings(connection, path))
