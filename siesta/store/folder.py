"""The folder of a learner: made whole or not at all, found again, connected to."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from siesta.errors import BadInput
from siesta.store import files, schema
from siesta.store.generations import Generations
from siesta.store.settings import write_settings

__all__ = ["DURABILITIES", "Access", "check_free", "connected", "filled", "make_folder"]

Access = Literal["read", "teach", "sleep"]
"""What a process opens a store for."""

DURABILITIES: dict[str, str] = {"process": "NORMAL", "power": "FULL"}
"""What survives what: the death of the process, or that of the machine; and what SQLite calls it."""

Tensors = Mapping[str, Tensor]


def check_free(path: Path) -> None:
    """Refuses a path at which no store can be made."""
    with files.disk_errors(path):
        if path.exists() or path.is_symlink():
            raise BadInput(f"{path} exists already: choose another name or remove it first")
        if not path.parent.is_dir():
            raise BadInput(f"the folder {path.parent} does not exist: make it first")


def make_folder(
    path: Path, settings: Mapping[str, Any], constant: Mapping[str, Tensors], generation: Mapping[str, Tensors]
) -> None:
    """Makes a store on disk; see `Store.create`."""
    with files.disk_errors(path), schema.database_errors(path):
        outer = Path(tempfile.mkdtemp(prefix=f".{path.name[:100]}.", suffix=".partial", dir=path.parent))
        partial = outer / "learner"
        try:
            hashes = files.replace_folder(partial, constant)
            first = files.replace_folder(partial / "generations" / "000000", generation)
            filled(schema.connect(partial / schema.DATABASE, False, "FULL"), settings, hashes, first).close()
            partial.rename(path)
            files.sync_folder(path.parent)
        finally:
            shutil.rmtree(outer, ignore_errors=True)


def filled(
    connection: sqlite3.Connection, settings: Mapping[str, Any], hashes: Mapping[str, str], first: Mapping[str, str]
) -> sqlite3.Connection:
    """An empty database with the tables of a store, its settings, and its first generation.

    Args:
        connection: To it.
        settings: As `Store.create` takes them.
        hashes: Of the files that never change, by name.
        first: Of the files of the first generation.
    """
    schema.make_tables(connection)
    with schema.transaction(connection):
        write_settings(connection, {**settings, "hashes": hashes})
        Generations.first(connection, first)
    return connection


def connected(path: Path, access: Access, durability: str) -> sqlite3.Connection:
    """A connection to a store in today's format; one of an older siesta is brought to it."""
    connection = schema.connect(path / schema.DATABASE, access == "read", DURABILITIES[durability])
    try:
        if not schema.check_format(connection, path):
            if access == "read":
                connection.close()
                connected(path, "sleep", durability).close()
                return connected(path, "read", durability)
            schema.migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection
