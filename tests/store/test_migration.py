"""Stores of older formats, and their migration."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from siesta.errors import BadInput, Damaged
from siesta.store import Store, schema, settings
from siesta.store.check import check_store
from siesta.store.session import Access
from tests.store.stores import everything, make_store, sample, swap, weights

OF_FORMAT_4 = """
    DROP TABLE rejected;
    PRAGMA user_version = 4;
"""
OF_FORMAT_3 = f"""
    {OF_FORMAT_4}
    DROP TABLE gram;
    DROP TABLE class_sums;
    DROP TABLE counted_since;
    ALTER TABLE samples DROP COLUMN counted;
    PRAGMA user_version = 3;
"""
OF_FORMAT_2 = f"{OF_FORMAT_3} DROP TABLE thumbnails; PRAGMA user_version = 2;"
OF_FORMAT_1 = f"""
    {OF_FORMAT_2}
    ALTER TABLE classes DROP COLUMN held;
    ALTER TABLE samples DROP COLUMN held;
    ALTER TABLE generations DROP COLUMN since;
    DROP TABLE in_use;
    DROP TABLE audit;
    DROP TABLE drift;
    PRAGMA user_version = 1;
"""


def make_older(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path / "store.sqlite")) as old:
        old.executescript(script)


@pytest.mark.parametrize("script", [OF_FORMAT_2, OF_FORMAT_3, OF_FORMAT_4])
def test_a_store_of_format_2_to_4_is_migrated(tmp_path: Path, script: str) -> None:
    store = make_store(tmp_path / "s", capacity=9)
    store.add([sample("ant", 1), sample("bee", 2)])
    before = everything(store)
    store.close()
    make_older(tmp_path / "s", script)
    with pytest.raises(BadInput, match="older siesta: open it once"):
        check_store(tmp_path / "s")
    store = Store.open(tmp_path / "s")
    store.keep_thumbnails({1: b"ant"})
    assert everything(store) == before and store.thumbnails.get(1) == b"ant"
    assert store.reject("bee", sample("ant", 1).codes) == 3
    assert store.statistics.number() is None
    store.close()
    assert check_store(tmp_path / "s") == []


def test_a_migrated_store_whose_newest_table_is_behind_all_others_opens_again(tmp_path: Path) -> None:
    store = make_store(tmp_path / "s", capacity=9)
    store.add([sample("ant", 1), sample("bee", 2)])
    before = everything(store)
    store.close()
    make_older(tmp_path / "s", OF_FORMAT_4)
    with closing(sqlite3.connect(tmp_path / "s" / "store.sqlite")) as old:
        old.execute("INSERT INTO thumbnails SELECT id, class_id, randomblob(50000) FROM samples")  # takes the free page
        old.commit()
    Store.open(tmp_path / "s").close()
    store = Store.open(tmp_path / "s")
    assert everything(store) == before
    store.close()
    assert check_store(tmp_path / "s") == []


def test_a_store_of_format_1_is_migrated(tmp_path: Path) -> None:
    store = make_store(tmp_path / "s", capacity=9)
    store.add([sample("ant", 1), sample("bee", 2)])
    swap(store, weights(1), np.array([1]), {"n": 1})
    store.add([sample("ant", 3), sample("cat", 4), sample("cat", 5)])
    before = everything(store)
    store.close()
    make_older(tmp_path / "s", OF_FORMAT_1)
    assert everything(Store.open(tmp_path / "s", "read")) == before
    store = Store.open(tmp_path / "s")
    assert everything(store) == before
    (only,) = store.generations.all()
    assert (only.number, only.since, only.in_use) == (1, 2, True)
    assert store.generations.newest() == 1
    store.close()


@pytest.mark.parametrize("access", ["read", "teach"])
def test_a_version_that_reads_older_formats_only_refuses_a_migrated_store(
    tmp_path: Path, access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(settings, "FORMAT", 3)
        make_store(tmp_path / "s").close()
    make_older(tmp_path / "s", OF_FORMAT_3)
    Store.open(tmp_path / "s").close()
    monkeypatch.setattr(schema, "FORMAT", 3)
    with pytest.raises(Damaged, match="has format 5 and this siesta reads up to 3: upgrade"):
        Store.open(tmp_path / "s", access)


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    make_store(tmp_path / "s").close()
    make_older(tmp_path / "s", OF_FORMAT_1)
    make_older(tmp_path / "s", f"UPDATE settings SET value = {json.dumps('damaged')!r} WHERE name = 'seed'")
    before = (tmp_path / "s" / "store.sqlite").read_bytes()
    with pytest.raises(Damaged, match="has lost its settings"):
        Store.open(tmp_path / "s")
    assert (tmp_path / "s" / "store.sqlite").read_bytes() == before
