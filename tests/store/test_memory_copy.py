"""What a pack has of a store's database, and what of a foreign database is refused."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from siesta.errors import Damaged
from siesta.store import Store
from siesta.store.memory_copy import check_tables, copy_memory, memory_facts
from tests.store.stores import execute, make_store, sample, swap, weights


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(make_store(tmp_path / "a.siesta", capacity=4)) as store:
        store.add([sample(label, number, key=number) for number, label in enumerate("abcabc")])
        swap(store, weights(1), np.array([3, 4]), {"judge": "secret"})
        store.keep_thumbnails({6: b"a thumbnail"})
        with store.sleeping():
            store.edits.rename("a", "z")
    return tmp_path / "a.siesta"


@pytest.fixture
def copy(path: Path, tmp_path: Path) -> Path:
    copy_memory(path, tmp_path / "store.sqlite")
    return tmp_path / "store.sqlite"


def test_a_copy_has_samples_and_classes_but_nothing_else(path: Path, copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as found, closing(sqlite3.connect(path / "store.sqlite")) as source:
        for table in ("classes", "samples", "codes", "recent", "in_use", "settings", "gram", "class_sums"):
            query = f"SELECT * FROM {table} ORDER BY 1"
            assert found.execute(query).fetchall() == source.execute(query).fetchall(), table
        for table in ("thumbnails", "keys", "audit", "drift"):
            assert found.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
        assert found.execute("SELECT number, report FROM generations").fetchall() == [(1, None)]
        assert found.execute("SELECT seq FROM sqlite_sequence WHERE name = 'samples'").fetchone() == (6,)
    assert b"a thumbnail" not in copy.read_bytes()
    assert b"secret" not in copy.read_bytes()
    assert not list(copy.parent.glob("store.sqlite-*"))


def test_the_newest_generation_is_known_even_if_another_is_active(path: Path, tmp_path: Path) -> None:
    execute(path, "UPDATE in_use SET generation = 0")
    copy_memory(path, tmp_path / "copy")
    with closing(sqlite3.connect(tmp_path / "copy")) as found:
        rows = found.execute("SELECT number, hashes = '' FROM generations").fetchall()
    assert rows == [(0, 0), (1, 1)]


def test_the_facts_are_those_of_the_settings(path: Path) -> None:
    with closing(Store.open(path, "read")) as store:
        assert memory_facts(path) == (1, store.constants.hashes())
    execute(path, "UPDATE settings SET value = '{}' WHERE name = 'hashes'")
    with pytest.raises(Damaged):
        memory_facts(path)


def test_our_tables_are_accepted(copy: Path) -> None:
    check_tables(copy)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER evil AFTER UPDATE ON samples BEGIN DELETE FROM codes; END",
        "CREATE VIEW evil AS SELECT 1",
        "DROP TABLE drift",
        "ALTER TABLE codes ADD COLUMN more",
        "CREATE INDEX evil ON codes (checksum)",
    ],
)
def test_a_database_with_other_tables_is_refused(statement: str, copy: Path) -> None:
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute(statement)
    with pytest.raises(Damaged, match="is not the memory of a learner of this version"):
        check_tables(copy)


def test_something_else_or_a_part_of_a_database_is_refused(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text" * 5000)
    shutil.copy(copy, tmp_path / "part")
    with (tmp_path / "part").open("r+b") as file:
        file.truncate(3 * 16384)
    for other in ("text", "part"):
        with pytest.raises(Damaged):
            check_tables(tmp_path / other)
