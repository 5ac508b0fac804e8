"""A copy of a store's database with what a sleep needs: no thumbnails, keys, edits or reports."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from siesta.errors import Damaged
from siesta.files import disk_errors
from siesta.store import schema
from siesta.store.settings import read_settings

__all__ = ["check_tables", "copy_memory", "memory_facts"]

_WHOLE_TABLES = ("settings", "classes", "recent", "samples", "codes", "in_use", "gram", "class_sums", "counted_since")
_OTHER_ROWS = (
    # the newest number, which seeds the sleep, and the active weights
    "INSERT INTO generations SELECT number, made, iif(number = generation, hashes, ''), since, NULL"
    " FROM source.generations JOIN source.in_use"
    " WHERE number = generation OR number = (SELECT max(number) FROM source.generations)",
    "DELETE FROM sqlite_sequence",
    "INSERT INTO sqlite_sequence SELECT name, seq FROM source.sqlite_sequence WHERE name != 'audit'",
)
_LONGEST = 2**30  # bytes of a value


def copy_memory(path: Path, target: Path) -> None:
    """Copy what a sleep needs of the store in the folder `path` to the new database `target`, as of one moment."""
    address = f"file:{quote(os.fsencode((path / schema.DATABASE).resolve()))}?mode=ro"
    with disk_errors(target), schema.database_errors(path), closing(schema.connect(target, False, "OFF")) as connection:
        schema.create_tables(connection)
        connection.execute("ATTACH DATABASE ? AS source", (address,))
        connection.execute("BEGIN")
        for table in _WHOLE_TABLES:
            names = connection.execute("SELECT group_concat(name) FROM pragma_table_info(?)", (table,)).fetchone()[0]
            connection.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM source.{table}")  # noqa: S608
        for statement in _OTHER_ROWS:
            connection.execute(statement)
        connection.execute("COMMIT")


def check_tables(file: Path) -> None:
    """Raise `Damaged` unless a database that came from elsewhere is whole and has our tables, and nothing but those.

    A trigger or a view in it would otherwise run when it is used.
    """
    address = f"file:{quote(os.fsencode(file.resolve()))}?mode=ro&immutable=1"
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    with closing(sqlite3.connect(address, uri=True)) as found, closing(sqlite3.connect(":memory:")) as own:
        found.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        schema.create_tables(own)
        try:
            found.execute("PRAGMA trusted_schema = OFF")
            found.execute("PRAGMA cell_size_check = ON")
            same = found.execute(query).fetchall() == own.execute(query).fetchall()
            whole = found.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)]
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise Damaged(f"{file} is damaged ({error}): pack again") from error
    if not (same and whole):
        raise Damaged(f"{file} is not the memory of a learner of this version of siesta: pack again")


def memory_facts(path: Path) -> tuple[int, dict[str, str]]:
    """Return the active generation of the store in the folder `path`, and the hashes of its constant files."""
    lost = Damaged(f"{path} has lost its settings: pack again")
    with schema.database_errors(path), closing(schema.connect(path / schema.DATABASE, True, "OFF")) as connection:
        try:
            ((generation,),) = connection.execute("SELECT generation FROM in_use").fetchall()
            hashes = read_settings(connection, path)["hashes"]
        except (KeyError, ValueError) as error:
            raise lost from error
    if not isinstance(generation, int) or not isinstance(hashes, dict) or not all(map(_is_text, hashes.values())):
        raise lost
    return generation, hashes


def _is_text(value: object) -> bool:
    return isinstance(value, str)
