"""Repair of a malformed database, and of any flipped byte: cuts across integrity and the store's salvage."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from siesta.errors import Damaged, SiestaError
from siesta.learner import Siesta
from siesta.learner.integrity import check, repair
from siesta.store import OVERHEAD_BYTES, NewSample, Store
from siesta.store.salvage import salvage_database
from tests.learner.damage import (
    assert_usable,
    codes_of,
    copied,
    files_of,
    picture,
    rewrite,
)
from tests.stores import store_of

UNCHECKED = {"generations": {1, 4}, "samples": {3}, "keys": {0, 1}, "sqlite_sequence": {1}}
"""Columns that neither a checksum nor other rows can verify: dates, reports, rehearsal counts, keys, counters."""


@pytest.fixture(scope="module")
def many_samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, of no network, whose tables have several pages each."""
    path = tmp_path_factory.mktemp("many") / "s"
    settings = {"code_bytes": 200, "memory_bytes": 5000 * (200 + OVERHEAD_BYTES), "seed": 0}
    store = Store.create(path, settings=settings, constants={}, generation={})
    rng = np.random.default_rng(0)
    feature = np.ones(4, dtype=np.float32)
    store.add([NewSample(f"class {number % 7}", rng.bytes(200), feature, number * 10**15) for number in range(4000)])
    store.close()
    return path


def leaf_pages(path: Path, table: str) -> list[int]:
    """Pages with rows of a table, counted from one."""
    with contextlib.closing(sqlite3.connect(path / "store.sqlite")) as connection:
        try:
            rows = connection.execute("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (table,))
        except sqlite3.OperationalError:
            pytest.skip("this SQLite cannot tell which page is whose")
        return [row[0] for row in rows]


@pytest.mark.parametrize("table", ["codes", "samples", "keys", "samples_by_class"])
def test_all_rows_outside_of_lost_pages_are_salvaged(many_samples: Path, tmp_path: Path, table: str) -> None:
    path = tmp_path / "s"
    shutil.copytree(many_samples, path)
    pages = leaf_pages(path, table)
    assert len(pages) > 2
    data = bytearray((path / "store.sqlite").read_bytes())
    for page in (pages[0], pages[len(pages) // 2]):
        data[(page - 1) * 16384 : page * 16384] = b"\xff" * 16384
    (path / "store.sqlite").write_bytes(data)
    with salvage_database(path) as connection:
        counts = {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in ("samples", "codes", "keys", "classes")
        }
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'samples'").fetchone() == (4000,)
    others = {name: count for name, count in counts.items() if name != table}
    assert others == {name: 7 if name == "classes" else 4000 for name in others}
    lost = 4000 - counts.get(table, 4000)
    if table == "samples":
        assert lost == 0, "the index knows them too"
    elif table != "samples_by_class":
        assert 0 < lost <= 2.5 * 4000 / len(pages)


@pytest.mark.parametrize("table", ["codes", "samples", "recent", "generations", "classes"])
def test_a_malformed_database_is_salvaged_as_far_as_possible(path: Path, table: str) -> None:
    (page, *_) = leaf_pages(path, table)
    data = bytearray((path / "store.sqlite").read_bytes())
    data[(page - 1) * 16384 : (page - 1) * 16384 + 64] = b"\xff" * 64
    rewrite(path / "store.sqlite", bytes(data))
    assert any(found.kind == "database" for found in check(path))
    if table == "generations":
        with pytest.raises(Damaged, match="no generation"):
            repair(path)
        return
    lines = repair(path)
    assert "store.sqlite.damaged" in lines[0]
    assert (path / "store.sqlite.damaged").read_bytes() == data
    assert check(path) == []
    with Siesta.open(path) as learner:
        assert learner.info().samples.stored == (0 if table == "codes" else 12)
        learner.learn_one(picture(50), "class 0")
        learner.predict_one(picture(50))
    assert check(path) == []


@pytest.mark.parametrize(
    "words",
    [
        "class_id INTEGER PRIMARY KEY,\n",
        "id INTEGER PRIMARY KEY, checksum",
        "slot INTEGER",
        "class_id INTEGER PRIMARY KEY, count",
        "sample_id INTEGER PRIMARY KEY",
    ],
    ids=["recent", "codes", "samples", "class_sums", "counted_since"],
)
def test_a_damaged_table_schema_loses_no_row(path: Path, intact: Path, words: str) -> None:
    data = (path / "store.sqlite").read_bytes()
    assert data.count(words.encode()) == 1
    rewrite(path / "store.sqlite", data.replace(words.encode(), words.replace("INTEGER", "INTEG+R").encode()))
    assert [found.words for found in check(path)]
    repair(path)
    assert_usable(path, intact)


# -- the first page ----------------------------------------------------------------------------------------------------

HEADER_FIELDS = {  # by offset: SQLite's name in "Database File Format"
    0: "magic",
    16: "page size",
    18: "write version",
    20: "reserved",
    31: "pages",
    39: "pages in freelist",
    47: "schema format",
    59: "encoding",
    63: "user version",
    71: "application",
    100: "page type",
    104: "cells",
}
UNUSED_BITS = {24, 25, 26, 27, 40, 41, 42, 43, *range(92, 100)}
"""Offsets of counters that SQLite only compares with each other; they are neither right nor wrong."""


STATISTICS = {"gram", "class_sums", "counted_since"}
"""Tables that a repair computes again from the stored samples, which `check` compares them with."""


@pytest.fixture(scope="module")
def edited(intact: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The intact learner with a row in every table, and its log written into the database."""
    return edit(copied(intact, tmp_path_factory.mktemp("edited") / "edited.siesta"))


def edit(path: Path) -> Path:
    with Siesta.open(path) as learner:
        learner.rename("late", "later")
        learner.keep_thumbnails({number: bytes([number]) for number in range(1, 10)})
    return path


def whole_rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows but those of statistics, which a repair computes again from the stored samples."""
    with contextlib.closing(sqlite3.connect(f"file:{path}/store.sqlite?mode=ro", uri=True)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        kept = [name for name in names if name not in STATISTICS]
        return {name: sorted(connection.execute(f"SELECT * FROM {name}")) for name in kept}


def flip_bit(path: Path, place: int, bit: int) -> None:
    data = bytearray((path / "store.sqlite").read_bytes())
    data[place] ^= 1 << bit
    rewrite(path / "store.sqlite", bytes(data))


def assert_harmless_or_repaired(path: Path, edited: Path, place: int, bit: int) -> None:
    flip_bit(path, place, bit)
    with contextlib.suppress(Damaged):
        Siesta.open(path, read_only=True).close()
    findings = check(path)
    assert findings or place in UNUSED_BITS
    repair(path)
    assert check(path, full=True) == []
    assert whole_rows(path) == whole_rows(edited)


@pytest.mark.parametrize("place", HEADER_FIELDS, ids=HEADER_FIELDS.get)
def test_a_flipped_bit_of_the_first_page_loses_nothing(edited: Path, tmp_path: Path, place: int) -> None:
    assert_harmless_or_repaired(copied(edited, tmp_path / "copy"), edited, place, place % 8)


@pytest.mark.slow
@pytest.mark.parametrize("place", range(108))
def test_no_flipped_bit_of_the_first_page_loses_anything(edited: Path, tmp_path: Path, place: int) -> None:
    for bit in range(8):
        assert_harmless_or_repaired(copied(edited, tmp_path / str(bit)), edited, place, bit)


@pytest.mark.parametrize(("words", "place"), [("tablecodescodes", 15), ("tablekeyskeys", 6), ("tablekeyskeys", 15)])
def test_a_flipped_bit_in_the_row_of_a_table_loses_nothing(
    edited: Path, tmp_path: Path, words: str, place: int
) -> None:
    start = (edited / "store.sqlite").read_bytes().index(words.encode())
    assert_harmless_or_repaired(copied(edited, tmp_path / "copy"), edited, start + place, 0)


@pytest.mark.parametrize(("place", "bit"), [(0, 0), (31, 0), (31, 3), (31, 5), (100, 0)])
def test_a_flipped_bit_of_the_first_page_beside_a_log_loses_nothing(
    edited: Path, tmp_path: Path, place: int, bit: int
) -> None:
    before = copied(edited, tmp_path / "before")
    path = tmp_path / "copy"
    with Siesta.open(before) as learner:
        learner.learn_one(picture(70), "class 0")
        copied(before, path)
        shutil.copyfile(before / "store.sqlite-wal", path / "store.sqlite-wal")
    flip_bit(path, place, bit)
    repair(path)
    assert check(path) == []
    assert whole_rows(path) == whole_rows(before)


def test_a_wrong_number_of_pages_does_not_matter_where_the_log_has_another(edited: Path, tmp_path: Path) -> None:
    before = copied(edited, tmp_path / "before")
    path = tmp_path / "copy"
    with Siesta.open(before) as learner:
        learner.learn_many([picture(70 + number) for number in range(12)], ["class 0"] * 12)
        learner.keep_thumbnails({number: bytes(20_000) for number in range(1, 4)})  # the database grows
        copied(before, path)
        shutil.copyfile(before / "store.sqlite-wal", path / "store.sqlite-wal")
    flip_bit(path, 31, 0)
    assert check(path) == []
    assert whole_rows(path) == whole_rows(before)


def test_a_damaged_header_is_never_written_with(edited: Path, tmp_path: Path) -> None:
    path = copied(edited, tmp_path / "copy")
    flip_bit(path, 31, 2)  # fewer pages than there are: new ones would overwrite others
    before = files_of(path)
    with pytest.raises(Damaged, match=r"the header is damaged.*siesta repair"):
        Siesta.open(path)
    assert files_of(path) == before


# -- flipped bytes -----------------------------------------------------------------------------------------------------


def rows_of(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of the database, without the columns that cannot be verified."""
    with contextlib.closing(sqlite3.connect(f"file:{path}/store.sqlite?mode=ro", uri=True)) as connection:
        connection.text_factory = bytes
        names = [row[0].decode() for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: list(_checked_columns(connection, name)) for name in names}


def _checked_columns(connection: sqlite3.Connection, name: str) -> Iterator[tuple[Any, ...]]:
    for row in connection.execute(f"SELECT * FROM {name}"):
        yield tuple(value for place, value in enumerate(row) if place not in UNCHECKED.get(name, ()))


def flip(path: Path, rng: np.random.Generator) -> str:
    """Change one non-zero byte: in half of the cases in a random page of the database, else in a tensor file."""
    names = sorted(str(file.relative_to(path)) for file in path.rglob("*.safetensors"))
    name = "store.sqlite" if rng.integers(2) else str(rng.choice(names))
    data = bytearray((path / name).read_bytes())
    places = np.flatnonzero(np.frombuffer(data, dtype=np.uint8))
    if name == "store.sqlite":
        page = rng.choice(np.unique(places // 16384))
        places = places[places // 16384 == page]
    data[int(rng.choice(places))] ^= int(rng.integers(1, 256))
    rewrite(path / name, bytes(data))
    return name


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_byte_is_found_and_repaired_or_harmless(path: Path, intact: Path, seed: int) -> None:
    name = flip(path, np.random.default_rng(seed))
    true = codes_of(intact)
    try:
        with Siesta.open(path, read_only=True) as learner:
            learner.predict_one(picture(3))
            learner.info()
            learner.generations()
            ids = np.array(sorted(true))
            present, codes = store_of(learner).samples.get(ids)
            for sample, found in zip(ids[present].tolist(), codes, strict=True):
                assert bytes(found) == true[sample]
    except SiestaError as error:
        assert "\n" not in str(error)
    if not is_damaged(path):
        assert name == "store.sqlite"
        assert rows_of(path) == rows_of(intact)
        return
    before = files_of(path)
    try:
        repair(path)
    except SiestaError:
        assert files_of(path) == before
        return
    assert check(path) == []
    assert codes_of(path).items() <= true.items()
    with Siesta.open(path) as learner:
        learner.learn_one(picture(50), "class 0")
        learner.predict_one(picture(50))


def is_damaged(path: Path) -> bool:
    try:
        return bool(check(path))
    except SiestaError:
        return True
