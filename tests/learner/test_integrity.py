"""`check` finds damage of every kind, and `repair` keeps what is intact."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from siesta.errors import BadInput, Busy, Damaged
from siesta.learner import Siesta
from siesta.learner.integrity import check, repair
from tests.learner.damage import (
    LABELS,
    NEWEST_TOP,
    assert_usable,
    execute,
    files_of,
    picture,
    rewrite,
)
from tests.stores import store_of

# -- damage of each kind -----------------------------------------------------------------------------------------------


def test_repair_changes_nothing_of_an_intact_learner(path: Path, intact: Path) -> None:
    before = files_of(path)
    assert check(path) == []
    assert repair(path) == []
    assert files_of(path) == before
    assert_usable(path, intact)


ROWS: list[tuple[str, str, str, int]] = [  # a change, what check calls it, what it says, samples lost
    ("UPDATE codes SET codes = x'00' WHERE id = 3", "sample", "sample 3: its codes are damaged", 1),
    ("UPDATE codes SET id = 1000 WHERE id = 3", "sample", "sample 3: its codes are lost", 1),
    ("DELETE FROM codes WHERE id = 4", "sample", "sample 4: its codes are lost", 1),
    ("DELETE FROM samples WHERE id = 4", "sample", "sample 4: the class of its codes is lost", 1),
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
    ("PRAGMA user_version = 0", "header", "format in its header", 0),
    ("INSERT INTO audit VALUES (1, '2026-11-18', '{')", "edit", "record of edit 1", 0),
    ("UPDATE drift SET count = 'x'", "drift", "error of the codec", 0),
    ("DROP INDEX samples_by_class", "database", "description of the tables", 0),
]


@pytest.mark.parametrize(("command", "kind", "words", "lost"), ROWS)
def test_damaged_rows_are_found_and_repaired(
    path: Path, intact: Path, command: str, kind: str, words: str, lost: int
) -> None:
    execute(path, command)
    findings = check(path)
    assert any(found.kind == kind and words in found.words for found in findings), findings
    assert all("\n" not in found.words for found in findings)
    lines = repair(path)
    assert lines
    assert_usable(path, intact, lost)


def test_sums_are_computed_again_from_stored_samples(path: Path, intact: Path) -> None:
    execute(path, "DELETE FROM recent")
    repair(path)
    with Siesta.open(path, read_only=True) as repaired, Siesta.open(intact, read_only=True) as before:
        classes = [record.id for record in before.classes()]
        pairs = zip(store_of(repaired).classes.recent(classes), store_of(before).classes.recent(classes), strict=True)
        for ours, theirs in pairs:
            assert (ours.class_id, ours.count) == (theirs.class_id, theirs.count)
            np.testing.assert_allclose(ours.total, theirs.total, rtol=1e-4, atol=1e-4)
        assert repaired.predict_one(picture(3)).label == before.predict_one(picture(3)).label


@pytest.mark.parametrize("damage", ["cut", "garbage", "gone"])
@pytest.mark.parametrize("name", [NEWEST_TOP, NEWEST_TOP.replace("top", "head")])
def test_a_damaged_active_generation_is_replaced_by_the_one_before(
    path: Path, intact: Path, name: str, damage: str
) -> None:
    spoil(path / name, damage)
    (found,) = check(path)
    assert (found.kind, found.item) == ("generation", 1)
    assert name in found.words
    with pytest.raises(Damaged):
        Siesta.open(path)
    lines = repair(path)
    assert any("generation 0 is in use" in line for line in lines)
    assert_usable(path, intact)
    with Siesta.open(path, read_only=True) as learner:
        assert [generation.number for generation in learner.generations()] == [0]
        taught = {record.id: record.taught for record in learner.classes()}
        assert {recent.class_id: recent.count for recent in store_of(learner).classes.recent(taught)} == taught


def spoil(file: Path, damage: str) -> None:
    data = file.read_bytes()
    file.unlink()
    if damage != "gone":
        file.write_bytes(data[: len(data) // 2] if damage == "cut" else bytes(len(data)))


def test_a_damaged_older_generation_is_removed(path: Path, intact: Path) -> None:
    spoil(path / "generations/000000/top.safetensors", "cut")
    assert [found.item for found in check(path)] == [0]
    assert repair(path) == ["removed generation 0: it is damaged"]
    assert_usable(path, intact)
    assert [folder.name for folder in (path / "generations").iterdir()] == ["000001"]


def test_damaged_graphs_are_exported_again(path: Path, intact: Path) -> None:
    spoil(path / "graphs.safetensors", "garbage")
    (found,) = check(path)
    assert found.kind == "cache"
    assert "can be made again" in found.words
    assert repair(path) == ["graphs.safetensors was exported again"]
    assert_usable(path, intact)


@pytest.mark.parametrize("name", ["bottom.safetensors", "codec.safetensors", "both generations", "settings", "header"])
def test_what_cannot_be_repaired_is_reported_and_not_changed(path: Path, name: str) -> None:
    if name == "settings":
        execute(path, "UPDATE settings SET value = '33' WHERE name = 'image_size'")
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


def test_leftovers_are_removed(path: Path, intact: Path) -> None:
    (path / "generations" / ".000002.partial").mkdir()
    (path / "store.sqlite.salvaged").write_bytes(b"half")
    assert check(path) == []
    repair(path)
    assert sorted(folder.name for folder in (path / "generations").iterdir()) == ["000000", "000001"]
    assert not (path / "store.sqlite.salvaged").exists()
    assert_usable(path, intact)


def test_a_missing_learner_is_reported(tmp_path: Path) -> None:
    for care in (check, repair):
        with pytest.raises(BadInput, match="no learner"):
            care(tmp_path / "nothing")


# -- others at work ----------------------------------------------------------------------------------------------------


def test_check_works_while_others_learn_and_sleep(path: Path) -> None:
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


def test_repair_is_refused_during_a_sleep(path: Path) -> None:
    with Siesta.open(path, to_sleep=True) as learner, store_of(learner).sleeping(), pytest.raises(Busy, match="asleep"):
        repair(path)
    repair(path)  # and leaves no lock behind
    Siesta.open(path).close()
