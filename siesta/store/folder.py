"""Creation of a learner's folder."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from siesta.errors import BadInput, Damaged
from siesta.files import disk_errors, sync_folder
from siesta.store import schema, tensor_files
from siesta.store.generations import insert_first_generation
from siesta.store.settings import write_settings
from siesta.store.statistics import Arrays, StatisticsTable
from siesta.store.tensor_files import Tensors

__all__ = ["check_new_path", "create_folder", "fill_database", "require_learner"]


def check_new_path(path: Path) -> None:
    """Raise `BadInput` if no store can be created at `path`."""
    with disk_errors(path):
        if path.exists() or path.is_symlink():
            raise BadInput(f"{path} exists already: choose another name or remove it first")
        if not path.parent.is_dir():
            raise BadInput(f"the folder {path.parent} does not exist: create it first")


def require_learner(path: Path) -> None:
    """Raise an error that says what is there unless there is a learner with a database at `path`.

    Raises:
        BadInput: There is nothing, or something else.
        Damaged: The database of a learner is missing or empty.
    """
    with disk_errors(path):
        if not path.exists():
            raise BadInput(f"there is no learner at {path}: create one with `siesta new {path}`")
        database = path / schema.DATABASE
        if database.is_file() and database.stat().st_size:
            return
        if (path / "generations").is_dir():
            state = "empty" if database.exists() else "missing"
            raise Damaged(f"{database} is {state}, and with it all samples: restore it from a copy of the learner")
        raise BadInput(f"{path} is not a siesta learner: create one with `siesta new`")


def create_folder(
    path: Path,
    settings: Mapping[str, Any],
    constants: Mapping[str, Tensors],
    generation: Mapping[str, Tensors],
    statistics: Arrays | None = None,
) -> None:
    """Create a store on disk, whole or not at all; see `Store.create` for the arguments."""
    with disk_errors(path), schema.database_errors(path):
        outer = Path(tempfile.mkdtemp(prefix=f".{path.name[:100]}.", suffix=".partial", dir=path.parent))
        partial = outer / "learner"
        try:
            hashes = tensor_files.write_folder(partial, constants)
            first = tensor_files.write_folder(partial / "generations" / "000000", generation)
            connection = schema.connect(partial / schema.DATABASE, False, "FULL")
            fill_database(connection, settings, hashes, first, statistics).close()
            partial.rename(path)
            try:
                sync_folder(path.parent)
            except OSError:
                shutil.rmtree(path, ignore_errors=True)
                raise
        finally:
            shutil.rmtree(outer, ignore_errors=True)


def fill_database(
    connection: sqlite3.Connection,
    settings: Mapping[str, Any],
    hashes: Mapping[str, str],
    first: Mapping[str, str],
    statistics: Arrays | None = None,
) -> sqlite3.Connection:
    """Create the tables of a store in an empty database, with its settings and its first generation.

    Args:
        connection: A connection to the database; it is returned.
        settings: The settings that `Store.create` takes.
        hashes: Hashes of the constant files, by name.
        first: Hashes of the files of generation 0, by name.
        statistics: Statistics of the head; None for a head without statistics.
    """
    schema.create_tables(connection)
    with schema.Transaction(connection):
        write_settings(connection, {**settings, "hashes": hashes})
        insert_first_generation(connection, first)
        if statistics is not None:
            StatisticsTable(None, connection).replace(statistics, np.zeros(0, np.int64))
    return connection
