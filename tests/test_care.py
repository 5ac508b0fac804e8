"""check names every damage, repair keeps what is whole: damage of each kind, and bytes flipped anywhere."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from siesta.care import check, repair
from siesta.errors import BadInput, Busy, Damaged, SiestaError
from siesta.learner import Siesta
from siesta.store import OVERHEAD_BYTES, NewSample, Store
from siesta.store.salvage import salvaged

LABELS = [f"class {number % 3}" for number in range(9)] + ["class 0", "class 1", "late"]
TOP = "generations/000001/top.safetensors"
UNCHECKED = {"generations": {1, 4}, "samples": {3}, "keys": {0, 1}, "sqlite_sequence": {1}}
"""Columns without a checksum, that nothing else can be held against: dates, reports, rehearsals, keys, counters."""


def picture(number: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(number).integers(0, 256, (32, 32, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine samples, a sleep, three more; closed, with nothing in the log."""
    path = tmp_path_factory.mktemp("care") / "whole.siesta"
    with Siesta.create(path, memory="20 samples", image_size=32) as learner:
        learner.learn_many([picture(number) for number in range(9)], LABELS[:9], range(9))
        learner.sleep(updates=8, batch_size=4)
        learner.learn_many([picture(number) for number in range(9, 12)], LABELS[9:], range(9, 12))
    with contextlib.closing(sqlite3.connect(path / "store.sqlite")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for ending in ("-wal", "-shm"):
        (path / f"store.sqlite{ending}").unlink(missing_ok=True)
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    return copied(whole, tmp_path / "copy.siesta")


def copied(whole: Path, path: Path) -> Path:
    """A copy that shares the large files, which are never written to but replaced."""
    shutil.copytree(whole, path, copy_function=os.link, ignore=shutil.ignore_patterns("*-shm", "*-wal"))
    for name in ("store.sqlite", "lock", "sleep.lock"):
        rewrite(path / name, (whole / name).read_bytes())
    return path


def rewrite(file: Path, data: bytes) -> None:
    file.unlink()
    file.write_bytes(data)


def change(path: Path, *commands: str) -> None:
    with contextlib.closing(sqlite3.connect(path / "store.sqlite", isolation_level=None)) as connection:
        for command in commands:
            connection.execute(command)


def codes_of(path: Path) -> dict[int, bytes]:
    with contextlib.closing(Store.open(path, "read")) as store:
        ids = np.sort(store.samples.draw(1000, np.random.default_rng(0))[0])
        present, codes = store.get(ids)
        assert present.all()
        return dict(zip(ids.tolist(), map(bytes, codes), strict=True))


def files_of(path: Path) -> dict[str, bytes]:
    """All that a failed repair must leave as it is."""
    ours = (file for file in path.rglob("*") if file.is_file() and not file.name.endswith(("lock", "-shm", "-wal")))
    return {str(file.relative_to(path)): file.read_bytes() for file in ours}


def lives(path: Path, whole: Path, lost: int = 0) -> None:
    """It is whole, has all codes but `lost`, answers and learns."""
    assert check(path) == []
    before, after = codes_of(whole), codes_of(path)
    assert after.items() <= before.items()
    assert len(after) == len(before) - lost
    with Siesta.open(path) as learner:
        learner.predict_one(picture(3))
        learner.learn_one(picture(50), "class 0")
        assert learner.predict_one(picture(50)).label
    assert check(path) == []


# -- damage of each kind -----------------------------------------------------------------------------------------------


def test_a_whole_learner_is_whole_and_repair_changes_nothing(path: Path, whole: Path) -> None:
    before = files_of(path)
    assert check(path) == []
    assert repair(path) == []
    assert files_of(path) == before
    lives(path, whole)


ROWS: list[tuple[str, str, str, int]] = [  # a change, what check calls it, what it says, samples lost
    ("UPDATE codes SET codes = x'00' WHERE id = 3", "sample", "sample 3: its codes are damaged", 1),
    ("UPDATE codes SET id = 1000 WHERE id = 3", "sample", "sample 3: its codes are lost", 1),
    ("DELETE FROM codes WHERE id = 4", "sample", "sample 4: its codes are lost", 1),
    ("DELETE FROM samples WHERE id = 4", "sample", "sample 4: it is lost which class", 1),
    ("UPDATE samples SET slot = 9 WHERE id = 1", "class", "slots up to 10", 0),
    ("UPDATE samples SET held = 1 WHERE id = 1", "class", "counts do not fit", 0),
    ("UPDATE classes SET stored = 7 WHERE id = 1", "class", "counts 7 stored samples where 4 are", 0),
    ("UPDATE classes SET stored = -7 WHERE id = 1", "class", "counts -7 stored samples where 4 are", 0),
    ("UPDATE classes SET taught = 70 WHERE id = 1", "sums", "70 samples taught", 0),
    ("UPDATE classes SET label = x'80' WHERE id = 1", "class", "its row is damaged", 0),
    ("DELETE FROM classes WHERE id = 2", "class", "class 2: its name is lost", 0),
    ("UPDATE recent SET total = x'0011' WHERE class_id = 4", "sums", "class 4: the sums", 0),
    ("UPDATE recent SET count = 5", "sums", "5 since", 0),
    ("DELETE FROM recent", "sums", "0 since", 0),
    ("DELETE FROM in_use", "in use", "generation in use", 0),
    ("UPDATE in_use SET generation = 7", "in use", "generation in use", 0),
    ("DELETE FROM generations WHERE number = 1", "in use", "generation in use", 0),
    ("UPDATE generations SET hashes = '{' WHERE number = 1", "generation", "its row is damaged", 0),
    ("UPDATE generations SET report = '{'  WHERE number = 1", "report", "report of its sleep", 0),
    ("DELETE FROM sqlite_sequence", "class", "newest of its samples", 0),
    ("PRAGMA application_id = 5", "database", "header", 0),
    ("PRAGMA user_version = 0", "database", "header", 0),
    ("DROP INDEX samples_by_class", "database", "description of the tables", 0),
]


@pytest.mark.parametrize(("command", "kind", "words", "lost"), ROWS)
def test_damaged_rows_are_named_and_repaired(
    path: Path, whole: Path, command: str, kind: str, words: str, lost: int
) -> None:
    change(path, command)
    findings = check(path)
    assert any(found.kind == kind and words in found.words for found in findings), findings
    assert all("\n" not in found.words for found in findings)
    lines = repair(path)
    assert lines
    lives(path, whole, lost)


def test_sums_are_made_again_from_the_stored_samples(path: Path, whole: Path) -> None:
    change(path, "DELETE FROM recent")
    repair(path)
    with Siesta.open(path, read_only=True) as repaired, Siesta.open(whole, read_only=True) as before:
        classes = [record.id for record in before.store.classes()]
        pairs = zip(repaired.store.recent(classes), before.store.recent(classes), strict=True)
        for ours, theirs in pairs:
            assert (ours.class_id, ours.count) == (theirs.class_id, theirs.count)
            np.testing.assert_allclose(ours.total, theirs.total, rtol=1e-4, atol=1e-4)
        assert repaired.predict_one(picture(3)).label == before.predict_one(picture(3)).label


@pytest.mark.parametrize("damage", ["cut", "garbage", "gone"])
@pytest.mark.parametrize("name", [TOP, TOP.replace("top", "head")])
def test_without_its_weights_it_answers_with_those_before(path: Path, whole: Path, name: str, damage: str) -> None:
    spoil(path / name, damage)
    (found,) = check(path)
    assert (found.kind, found.item) == ("generation", 1)
    assert name in found.words
    with pytest.raises(Damaged):
        Siesta.open(path)
    lines = repair(path)
    assert any("generation 0 is in use" in line for line in lines)
    lives(path, whole)
    with Siesta.open(path, read_only=True) as learner:
        assert [generation.number for generation in learner.generations()] == [0]
        taught = {record.id: record.taught for record in learner.store.classes()}
        assert {recent.class_id: recent.count for recent in learner.store.recent(taught)} == taught


def spoil(file: Path, damage: str) -> None:
    data = file.read_bytes()
    file.unlink()
    if damage != "gone":
        file.write_bytes(data[: len(data) // 2] if damage == "cut" else bytes(len(data)))


def test_a_damaged_older_generation_is_let_go(path: Path, whole: Path) -> None:
    spoil(path / "generations/000000/top.safetensors", "cut")
    assert [found.item for found in check(path)] == [0]
    assert repair(path) == ["removed generation 0: it is damaged"]
    lives(path, whole)
    assert [folder.name for folder in (path / "generations").iterdir()] == ["000001"]


def test_graphs_are_made_again(path: Path, whole: Path) -> None:
    spoil(path / "graphs.safetensors", "garbage")
    (found,) = check(path)
    assert found.kind == "cache"
    assert "can be made again" in found.words
    assert repair(path) == ["graphs.safetensors was made again"]
    lives(path, whole)


@pytest.mark.parametrize("name", ["bottom.safetensors", "codec.safetensors", "both generations", "settings", "header"])
def test_what_cannot_be_repaired_is_said_and_left_alone(path: Path, name: str) -> None:
    if name == "settings":
        change(path, "UPDATE settings SET value = '33' WHERE name = 'image_size'")
    elif name == "header":
        rewrite(path / "store.sqlite", b"garbage" * 5000)
    else:
        for file in [path / name] if name.endswith("s") and (path / name).exists() else path.rglob("top.safetensors"):
            spoil(file, "cut")
    before = files_of(path)
    assert check(path)
    with pytest.raises(Damaged, match="cannot be repaired") as caught:
        repair(path)
    assert "\n" not in str(caught.value)
    assert files_of(path) == before


def test_leftovers_are_removed(path: Path, whole: Path) -> None:
    (path / "generations" / ".000002.partial").mkdir()
    (path / "store.sqlite.salvaged").write_bytes(b"half")
    assert check(path) == []
    repair(path)
    assert sorted(folder.name for folder in (path / "generations").iterdir()) == ["000000", "000001"]
    assert not (path / "store.sqlite.salvaged").exists()
    lives(path, whole)


def test_nothing_there_is_said(tmp_path: Path) -> None:
    for care in (check, repair):
        with pytest.raises(BadInput, match="no learner"):
            care(tmp_path / "nothing")


# -- others at work ----------------------------------------------------------------------------------------------------


def test_check_works_while_somebody_teaches_and_sleeps(path: Path) -> None:
    findings: list[object] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            findings.extend(check(path))

    looker = threading.Thread(target=look)
    with Siesta.open(path) as learner:
        looker.start()
        for number in range(60, 80):
            learner.learn_one(picture(number), LABELS[number % 12])
            if number % 5 == 0:
                learner.sleep(updates=2, batch_size=2)
        done.set()
        looker.join()
    assert findings == []


def test_repair_waits_for_nobody(path: Path) -> None:
    with Siesta.open(path, to_sleep=True) as learner, learner.store.sleeping(), pytest.raises(Busy, match="asleep"):
        repair(path)
    repair(path)  # and leaves no lock behind
    Siesta.open(path).close()


# -- a malformed database ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, of no network, whose tables have several pages each."""
    path = tmp_path_factory.mktemp("many") / "s"
    settings = {"code_bytes": 200, "memory_bytes": 5000 * (200 + OVERHEAD_BYTES), "seed": 0}
    store = Store.create(path, settings=settings, constant={}, generation={})
    rng = np.random.default_rng(0)
    feature = np.ones(4, dtype=np.float32)
    store.add([NewSample(f"class {number % 7}", rng.bytes(200), feature, number * 10**15) for number in range(4000)])
    store.close()
    return path


def leaves(path: Path, table: str) -> list[int]:
    """Pages with rows of a table, counted from one."""
    with contextlib.closing(sqlite3.connect(path / "store.sqlite")) as connection:
        try:
            rows = connection.execute("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (table,))
        except sqlite3.OperationalError:
            pytest.skip("this SQLite cannot tell which page is whose")
        return [row[0] for row in rows]


@pytest.mark.parametrize("table", ["codes", "samples", "keys", "samples_by_class"])
def test_all_rows_but_those_of_lost_pages_are_salvaged(many: Path, tmp_path: Path, table: str) -> None:
    path = tmp_path / "s"
    shutil.copytree(many, path)
    pages = leaves(path, table)
    assert len(pages) > 2
    data = bytearray((path / "store.sqlite").read_bytes())
    for page in (pages[0], pages[len(pages) // 2]):
        data[(page - 1) * 16384 : page * 16384] = b"\xff" * 16384
    (path / "store.sqlite").write_bytes(data)
    with salvaged(path) as connection:
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
def test_a_malformed_database_is_salvaged_as_far_as_it_goes(path: Path, table: str) -> None:
    (page, *_) = leaves(path, table)
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
        assert len(learner.store) == (0 if table == "codes" else 12)
        learner.learn_one(picture(50), "class 0")
        learner.predict_one(picture(50))
    assert check(path) == []


@pytest.mark.parametrize("words", ["class_id INTEGER PRIMARY KEY", "id INTEGER PRIMARY KEY, checksum", "slot INTEGER"])
def test_a_damaged_description_of_the_tables_costs_no_row(path: Path, whole: Path, words: str) -> None:
    data = (path / "store.sqlite").read_bytes()
    assert data.count(words.encode()) == 1
    rewrite(path / "store.sqlite", data.replace(words.encode(), words.replace("INTEGER", "INTEG+R").encode()))
    assert [found.words for found in check(path)]
    repair(path)
    lives(path, whole)


# -- flipped bytes -----------------------------------------------------------------------------------------------------


def facts(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All that the rows say, but for what nothing can vouch for."""
    with contextlib.closing(sqlite3.connect(f"file:{path}/store.sqlite?mode=ro", uri=True)) as connection:
        connection.text_factory = bytes
        names = [row[0].decode() for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: list(_rows(connection, name)) for name in names}


def _rows(connection: sqlite3.Connection, name: str) -> Iterator[tuple[Any, ...]]:
    for row in connection.execute(f"SELECT * FROM {name}"):
        yield tuple(value for place, value in enumerate(row) if place not in UNCHECKED.get(name, ()))


def flip(path: Path, rng: np.random.Generator) -> str:
    """Another byte somewhere: in the database every other time, there in any page alike, where something is written."""
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
def test_a_flipped_byte_is_refused_or_harmless_and_named_and_repaired(path: Path, whole: Path, seed: int) -> None:
    name = flip(path, np.random.default_rng(seed))
    true = codes_of(whole)
    try:
        with Siesta.open(path, read_only=True) as learner:
            learner.predict_one(picture(3))
            learner.info()
            learner.generations()
            ids = np.array(sorted(true))
            present, codes = learner.store.get(ids)
            for sample, found in zip(ids[present].tolist(), codes, strict=True):
                assert bytes(found) == true[sample]
    except SiestaError as error:
        assert "\n" not in str(error)
    if not named(path):
        assert name == "store.sqlite"
        assert facts(path) == facts(whole)
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


def named(path: Path) -> bool:
    try:
        return bool(check(path))
    except SiestaError:
        return True
