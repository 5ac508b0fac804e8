"""Rejections have ids of their own, follow their classes, and stay within the budget together with the samples."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from siesta.errors import BadInput, Damaged
from siesta.store import Store
from siesta.store.check import check_store
from siesta.store.rejections import MOST_REJECTIONS, RejectionTable
from siesta.store.repair import repair_rows
from siesta.store.salvage import salvage_database
from siesta.store.schema import connect
from tests.store.stores import CODE_BYTES, SAMPLE_BYTES, execute, make_store, sample


def codes(number: int) -> bytes:
    return bytes([number] * CODE_BYTES)


def test_ids_of_samples_and_rejections_differ_and_equal_rejections_are_one() -> None:
    store = make_store(capacity=50)
    store.add([sample("ant", 1), sample("bee", 2)])
    assert store.reject("ant", codes(1)) == 3
    assert store.reject("ant", codes(1)) == 3
    assert store.reject("bee", codes(1)) == 4
    assert store.add([sample("ant", 3)])[0].id == 5
    assert store.rejections.classes() == {3: 1, 4: 2}
    assert store.rejections.get([4, 9]) == {4: codes(1)}


@pytest.mark.parametrize("label", ["cat", "", "a\nb"])
def test_a_label_without_a_class_is_refused(label: str) -> None:
    store = make_store(capacity=50)
    store.add([sample("ant", 1)])
    with pytest.raises(BadInput):
        store.reject(label, codes(1))
    assert store.rejections.count() == 0
    with pytest.raises(ValueError, match="4 bytes of codes in this store, not 1"):
        store.reject("ant", b"x")


def test_they_take_a_tenth_of_the_budget_at_most_and_the_oldest_goes() -> None:
    store = make_store(capacity=30)
    store.add([sample("ant", number) for number in range(30)])
    rejected = [store.reject("ant", codes(number)) for number in range(5)]
    assert list(store.rejections.classes()) == rejected[2:]
    assert (len(store), store.budget.bytes_used()) == (27, 30 * SAMPLE_BYTES)
    store.add([sample("bee", 1)])
    assert (len(store), store.budget.bytes_used()) == (27, 30 * SAMPLE_BYTES)
    assert make_store(capacity=4).rejections.capacity == 1
    assert make_store(capacity=10**6).rejections.capacity == MOST_REJECTIONS


def test_they_follow_their_class_and_go_with_it() -> None:
    store = make_store(capacity=50)
    store.add([sample("ant", 1), sample("bee", 2), sample("cat", 3)])
    rejected = [store.reject(label, codes(9)) for label in ("ant", "bee", "cat")]
    with store.sleeping():
        store.edits.rename("ant", "wasp")
        store.edits.merge("wasp", "bee", lambda _, head: head)
        assert store.rejections.classes() == dict(zip(rejected, (2, 2, 3), strict=True))
        assert store.rejections.get(rejected[:1]) == {rejected[0]: codes(9)}
        store.edits.forget_class("cat", lambda _, head: head)
        store.edits.forget_rejection(rejected[1])
        assert store.rejections.classes() == {rejected[0]: 2}
        store.edits.forget_sample(2, np.zeros(3, np.float32), lambda _, head: head)
        store.edits.forget_sample(1, np.zeros(3, np.float32), lambda _, head: head)
    assert store.classes.all() == []
    assert store.rejections.count() == 0


def test_what_is_learned_after_all_is_not_rejected_any_more() -> None:
    store = make_store(capacity=50)
    first = sample("ant", 1)
    store.add([first, sample("bee", 2)])
    kept = store.reject("bee", first.codes)
    store.reject("ant", first.codes)
    store.add([first])
    assert list(store.rejections.classes()) == [kept]


def test_damage_is_found_refused_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with closing(make_store(path, capacity=50)) as store:
        store.add([sample("ant", 1), sample("bee", 2)])
        kept, damaged, moved = (store.reject("ant", codes(number)) for number in range(3))
    execute(path, f"UPDATE rejected SET codes = x'01020304' WHERE id = {damaged}")
    execute(path, f"UPDATE rejected SET class_id = 2 WHERE id = {moved}")
    findings = check_store(path)
    assert [(finding.kind, finding.item) for finding in findings] == [("rejection", damaged), ("rejection", moved)]
    with closing(Store.open(path)) as store, pytest.raises(Damaged, match="siesta repair"):
        store.rejections.get([damaged])
    with closing(connect(path / "store.sqlite", False, "NORMAL")) as connection:
        lines = repair_rows(connection, findings)
    assert lines == [f"removed rejection {number}: it is damaged" for number in (damaged, moved)]
    with closing(Store.open(path)) as store:
        assert store.rejections.get(store.rejections.classes()) == {kept: codes(0)}
    assert check_store(path) == []


def test_a_salvage_keeps_them_and_their_ids(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with closing(make_store(path, capacity=50)) as store:
        store.add([sample("ant", 1)])
        rejected = store.reject("ant", codes(7))
    execute(path, "DELETE FROM sqlite_sequence")
    assert [finding.kind for finding in check_store(path)] == ["class", "class"]
    with closing(Store.open(path)) as store, pytest.raises(Damaged, match="siesta repair"):
        store.reject("ant", codes(8))
    with salvage_database(path) as connection:
        table = RejectionTable(None, connection, CODE_BYTES, 50)
        assert table.get(table.classes()) == {rejected: codes(7)}
        assert table.insert(1, codes(8)) == rejected + 1
    with closing(sqlite3.connect(path / "store.sqlite")) as connection:
        lines = repair_rows(connection, check_store(path))
        assert f"set the newest id of samples to {rejected}" in lines
