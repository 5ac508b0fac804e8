"""The header of `store.sqlite`: verified before it is used, and rebuilt."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from siesta.store import Store, header
from siesta.store.header import PAGE_BYTES
from tests.store.stores import execute, sample

LOCKED_BY_OTHERS = """
import fcntl, os, sys
handle = os.open(sys.argv[1], os.O_RDWR)
try:
    fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("locked")
"""


def database(path: Path) -> Path:
    return path / "store.sqlite"


def flip(file: Path, place: int) -> bytes:
    """Flip a bit; return the bytes of the file before."""
    data = bytearray(file.read_bytes())
    before = bytes(data)
    data[place] ^= 1
    file.write_bytes(data)
    return before


def test_an_intact_header_is_left_alone(path: Path) -> None:
    before = database(path).read_bytes()
    with header.rebuild(database(path)) as rebuilt:
        assert not rebuilt
    assert database(path).read_bytes() == before


@pytest.mark.parametrize("place", [*range(24), *range(28, 32), *range(44, 60), *range(64, 92)])
def test_a_damaged_header_is_refused_and_rebuilt(path: Path, place: int) -> None:
    before = flip(database(path), place)
    with pytest.raises(sqlite3.DatabaseError, match="the header is damaged"):
        header.connect(database(path), f"file:{database(path)}?mode=ro")
    with header.rebuild(database(path)) as rebuilt:
        assert rebuilt
    assert database(path).read_bytes() == before


def test_the_old_header_comes_back_when_the_block_fails(path: Path) -> None:
    flip(database(path), 20)
    before = database(path).read_bytes()
    with pytest.raises(ZeroDivisionError), header.rebuild(database(path)):
        assert database(path).read_bytes() != before
        raise ZeroDivisionError
    assert database(path).read_bytes() == before


def test_a_database_cut_short_gets_the_number_of_pages_that_are_left(path: Path) -> None:
    pages = database(path).stat().st_size // PAGE_BYTES
    os.truncate(database(path), (pages - 2) * PAGE_BYTES + 100)
    with header.rebuild(database(path)) as rebuilt:
        assert rebuilt
    assert int.from_bytes(database(path).read_bytes()[28:32], "big") == pages - 2


def test_other_files_are_left_to_sqlite(tmp_path: Path) -> None:
    execute(tmp_path, "CREATE TABLE mine (x)")
    for content in (database(tmp_path).read_bytes(), b"", b"garbage"):
        database(tmp_path).write_bytes(content)
        header.connect(database(tmp_path), f"file:{database(tmp_path)}?mode=ro").close()
        with header.rebuild(database(tmp_path)) as rebuilt:
            assert not rebuilt


def test_a_copy_without_a_log_is_intact(path: Path, tmp_path: Path) -> None:
    """`VACUUM INTO` writes another journal mode into the header."""
    execute(path, f"VACUUM INTO '{tmp_path}/copy'")
    shutil.move(tmp_path / "copy", database(path))
    Store.open(path, "read").close()
    store = Store.open(path)
    store.add([sample("ant", 50)])
    store.close()


def test_a_log_may_have_more_pages_than_the_header_says(path: Path) -> None:
    with closing(Store.open(path)) as store:
        store.add([sample(f"class {number}", number) for number in range(3000)])
        copy = path.with_name("copy")
        shutil.copytree(path, copy)
    assert (copy / "store.sqlite-wal").stat().st_size
    with closing(Store.open(copy)) as store:
        assert len(store.classes.all()) == 3003


def test_locks_of_an_open_connection_survive_another_one(path: Path) -> None:
    with closing(Store.open(path)):
        Store.open(path, "read").close()
        found = subprocess.run(
            [sys.executable, "-c", LOCKED_BY_OTHERS, str(database(path))], capture_output=True, check=True
        )
    assert found.stdout == b"locked\n"


def test_root_pages_are_found_without_the_directory_of_the_page(path: Path) -> None:
    with closing(sqlite3.connect(database(path))) as connection:
        rows = connection.execute("SELECT type, name, tbl_name, rootpage FROM sqlite_master WHERE sql IS NOT NULL")
        objects = rows.fetchall()
    page = database(path).read_bytes()[:PAGE_BYTES]
    found = header.root_pages(page[:100] + bytes(100) + page[200:], [row[:3] for row in objects])
    assert found == {row[1]: row[3] for row in objects}
    assert header.root_pages(bytes(PAGE_BYTES), [row[:3] for row in objects]) == {}
