"""Formats, and databases that are not those of a learner."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from siesta.errors import BadInput, Damaged, SiestaError
from siesta.store import Store
from siesta.store.check import check_store
from siesta.store.session import Access
from tests.store.stores import everything, execute, is_one_line


@pytest.mark.parametrize("access", ["read", "teach"])
@pytest.mark.parametrize("data", [b"", b"garbage", bytes(100_000), b"SQLite format 3\0" + bytes(200)])
def test_a_garbage_database_is_refused_with_a_message(path: Path, data: bytes, access: Access) -> None:
    for leftover in ("store.sqlite-wal", "store.sqlite-shm"):
        (path / leftover).unlink(missing_ok=True)
    (path / "store.sqlite").write_bytes(data)
    with pytest.raises((Damaged, BadInput)) as caught:
        Store.open(path, access)
    assert is_one_line(caught.value)
    assert str(path) in str(caught.value)


def test_a_database_that_is_cut_short_is_damaged(path: Path) -> None:
    data = (path / "store.sqlite").read_bytes()
    (path / "store.sqlite").write_bytes(data[: len(data) // 2])
    with pytest.raises(Damaged) as caught:
        everything(Store.open(path, "read"))
    assert is_one_line(caught.value)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255), size=st.sampled_from([1, 16, 512]))
def test_flipped_bytes_are_harmless_or_refused_with_a_message(path: Path, where: float, value: int, size: int) -> None:
    """Damage may be harmless; if not, it is a `SiestaError` and nothing else."""
    file = path / "store.sqlite"
    whole = file.read_bytes()
    data = bytearray(whole)
    start = int(where * len(data))
    data[start : start + size] = bytes([value]) * len(data[start : start + size])
    file.write_bytes(data)
    try:
        store = Store.open(path, "read")
        try:
            everything(store)
            store.snapshot().weights["top"]
            store.generations.reports()
        finally:
            store.close()
    except SiestaError as error:
        assert is_one_line(error)
    except AssertionError:
        pass  # `everything` found samples without codes
    finally:
        for leftover in ("store.sqlite-wal", "store.sqlite-shm"):
            (path / leftover).unlink(missing_ok=True)
        file.write_bytes(whole)


@pytest.mark.parametrize("access", ["read", "teach"])
def test_a_newer_format_is_refused(path: Path, access: Access) -> None:
    execute(path, "PRAGMA user_version = 99", "UPDATE settings SET value = '99' WHERE name = 'format'")
    with pytest.raises(Damaged, match=r"99.*upgrade") as caught:
        Store.open(path, access)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("with_copy", [True, False])
@pytest.mark.parametrize("version", [0, 1, 2, 7, 99, -1])
def test_the_header_alone_changes_no_format(path: Path, version: int, with_copy: bool) -> None:
    before = everything(Store.open(path, "read"))
    execute(path, f"PRAGMA user_version = {version}")
    if not with_copy:
        without_format_setting(path)
    assert everything(Store.open(path, "read")) == before
    Store.open(path).close()
    assert [found.kind for found in check_store(path)] == ["header"]


def without_format_setting(path: Path) -> None:
    """Write the settings as version 0.1 does."""
    with closing(sqlite3.connect(path / "store.sqlite")) as connection, connection:
        connection.execute("DELETE FROM settings WHERE name IN ('format', 'checksum')")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_missing_table_makes_no_older_format(path: Path, version: int) -> None:
    execute(path, "DROP TABLE in_use", f"PRAGMA user_version = {version}")
    with pytest.raises(Damaged, match="the description of the tables is damaged"):
        Store.open(path)


@pytest.mark.parametrize("table", ["gram", "in_use", "drift"])
def test_a_damaged_condition_in_the_description_of_a_table_is_found(path: Path, table: str) -> None:
    store = Store.open(path)
    store.close()
    content = (path / "store.sqlite").read_bytes()
    place = content.index(b"CHECK (id", content.index(b"CREATE TABLE %s " % table.encode())) + len("CHECK (i")
    (path / "store.sqlite").write_bytes(content[:place] + b"$" + content[place + 1 :])
    assert [found.kind for found in check_store(path)] == ["database"]


def test_a_foreign_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    execute(folder, "CREATE TABLE mine (x)")
    before = (folder / "store.sqlite").read_bytes()
    with pytest.raises(BadInput, match="not a siesta learner"):
        Store.open(folder)
    assert (folder / "store.sqlite").read_bytes() == before
