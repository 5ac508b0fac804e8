"""Thumbnails are removed with their samples, and stay within the budget together with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from siesta.errors import BadInput
from siesta.store import OVERHEAD_BYTES, NewSample, Store
from siesta.store.check import check_store

CODE_BYTES = 68
SAMPLE_BYTES = CODE_BYTES + OVERHEAD_BYTES  # 100


def make_store(path: Path | None, capacity: int) -> Store:
    return Store.create(
        path,
        settings={"code_bytes": CODE_BYTES, "memory_bytes": capacity * SAMPLE_BYTES, "seed": 0},
        constants={},
        generation={"head": {"h": np.zeros(1)}},
    )


def teach(store: Store, label: str, count: int, size: int = 10) -> list[int]:
    feature = np.ones(3, np.float32)
    stored = store.add([NewSample(label, bytes(CODE_BYTES), feature) for _ in range(count)])
    store.keep_thumbnails({sample.id: b"%d" % (sample.id % 10) * size for sample in stored})
    return [sample.id for sample in stored]


def test_the_newest_samples_of_each_class_have_a_thumbnail() -> None:
    store = make_store(None, 100)
    ants, bees = teach(store, "ant", 20), teach(store, "bee", 3)
    assert store.thumbnails.by_class() == {1: ants[:-13:-1], 2: bees[::-1]}
    assert store.thumbnails.get(ants[0]) is None
    assert store.thumbnails.get(ants[-1]) == b"0" * 10
    assert store.thumbnails.total_bytes() == 150


def test_thumbnails_take_at_most_a_tenth_of_the_budget_and_samples_make_room() -> None:
    store = make_store(None, 20)  # 2,000 bytes: 200 for thumbnails
    for label in ("ant", "bee", "cat", "dog"):
        teach(store, label, 10, size=25)
        assert store.thumbnails.total_bytes() <= 200
        assert store.budget.bytes_used() <= 20 * SAMPLE_BYTES
        assert len(store) == sum(record.stored for record in store.classes.all())
    assert len(store) == 18
    assert all(
        store.samples.class_of(sample_id) == key
        for key, ids in store.thumbnails.by_class().items()
        for sample_id in ids
    )


def test_without_room_for_all_the_largest_class_loses_its_oldest_thumbnails() -> None:
    store = make_store(None, 40)  # 4,000 bytes: 400 for thumbnails
    ants, bees, cats = (teach(store, label, count, size=40) for label, count in (("ant", 3), ("bee", 2), ("cat", 12)))
    assert store.thumbnails.by_class() == {1: ants[::-1], 2: bees[::-1], 3: cats[:-6:-1]}


def test_an_image_larger_than_the_limit_is_not_kept() -> None:
    store = make_store(None, 1)
    teach(store, "ant", 1, size=50)
    assert (store.thumbnails.total_bytes(), len(store)) == (0, 1)
    teach(store, "bee", 2, size=10)
    assert len(store) == 1


def test_thumbnails_are_removed_with_their_samples(tmp_path: Path) -> None:
    store = make_store(tmp_path / "s", 100)
    ants, bees = teach(store, "ant", 3), teach(store, "bee", 3)
    with store.sleeping():
        store.edits.merge("bee", "ant", lambda _, state: state)
        assert store.thumbnails.by_class() == {1: bees[::-1] + ants[::-1]}
        store.edits.forget_sample(bees[0], np.ones(3, np.float32), lambda _, state: state)
        assert store.thumbnails.get(bees[0]) is None
        store.edits.forget_class("ant", lambda _, state: state)
    assert store.thumbnails.by_class() == {}
    store.keep_thumbnails({99: b"of no sample"})
    assert store.thumbnails.total_bytes() == 0
    store.close()
    assert check_store(tmp_path / "s") == []


def test_a_corrected_sample_keeps_its_thumbnail() -> None:
    store = make_store(None, 100)
    (ant,), bees = teach(store, "ant", 1), teach(store, "bee", 2)
    sample = NewSample("bee", bytes(CODE_BYTES), np.ones(3, np.float32))
    with store.sleeping():
        new = store.edits.correct(ant, sample, lambda _, state: state)
    assert store.thumbnails.by_class() == {2: [new, *bees[::-1]]}
    assert store.thumbnails.get(new) == b"1" * 10


def test_dropped_thumbnails_are_in_no_file(tmp_path: Path) -> None:
    store = make_store(tmp_path / "s", 100)
    (only,) = teach(store, "ant", 1)
    store.keep_thumbnails({only: b"what was seen"})
    store.drop_thumbnails()
    assert store.thumbnails.by_class() == {}
    assert not any(b"what was seen" in file.read_bytes() for file in (tmp_path / "s").glob("store*"))
    store.close()
    reader = Store.open(tmp_path / "s", "read")
    with pytest.raises(BadInput, match="read-only"):
        reader.keep_thumbnails({})
    reader.close()
