"""Salvage of rows from a database that SQLite calls malformed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from siesta.store import Store, salvage
from siesta.store.check import check_store
from siesta.store.salvage import replace_database, salvage_database
from tests.store.stores import everything


def test_an_intact_database_is_copied_whole(path: Path) -> None:
    reader = Store.open(path, "read")
    before = everything(reader)
    reader.close()
    with salvage_database(path) as connection:
        replace_database(path, connection)
    assert check_store(path) == []
    assert everything(Store.open(path, "read")) == before
    assert (path / "store.sqlite.damaged").exists()


def test_the_old_database_stays_when_the_salvaged_one_is_not_used(path: Path) -> None:
    old = (path / "store.sqlite").read_bytes()
    with pytest.raises(ZeroDivisionError), salvage_database(path):
        raise ZeroDivisionError
    assert (path / "store.sqlite").read_bytes() == old
    assert not list(path.glob("store.sqlite.*"))


def test_what_the_disk_does_not_deliver_at_once_is_read_again(path: Path) -> None:
    readings = []

    def refuse_once(kind: int, table: str | None, *_: object) -> int:
        readings.append(table)
        return sqlite3.SQLITE_DENY if len(readings) == 1 else sqlite3.SQLITE_OK

    with closing(sqlite3.connect(path / "store.sqlite")) as old:
        expected = old.execute("SELECT name, value FROM settings").fetchall()
        old.set_authorizer(refuse_once)
        assert list(salvage._until_it_fails(old, "SELECT name, value FROM settings")) == expected
    assert len(readings) > 1


def test_all_rows_before_and_after_a_damaged_page_are_salvaged(path: Path) -> None:
    store = Store.open(path)
    expected = store.samples.ids().tolist()
    store.close()
    file = path / "store.sqlite"
    data = bytearray(file.read_bytes())
    data[-16384:-16300] = bytes(84)  # the header of the last page
    file.write_bytes(data)
    with salvage_database(path) as connection:
        found = [row[0] for row in connection.execute("SELECT id FROM codes ORDER BY id")]
    assert set(found) <= set(expected)
