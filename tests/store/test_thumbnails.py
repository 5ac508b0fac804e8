"""Thumbnails: they go with their samples, and they and the samples together stay within the budget."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from siesta.errors import BadInput
from siesta.store import OVERHEAD_BYTES, NewSample, Store
from siesta.store.check import check_store

CODE_BYTES = 68
ONE = CODE_BYTES + OVERHEAD_BYTES  # 100


def make_store(path: Path | None, capacity: int) -> Store:
    return Store.create(
        path,
        settings={"code_bytes": CODE_BYTES, "memory_bytes": capacity * ONE, "seed": 0},
        constant={},
        generation={"head": {"h": torch.zeros(1)}},
    )


def teach(store: Store, label: str, count: int, size: int = 10) -> list[int]:
    feature = np.ones(3, np.float32)
    stored = store.add([NewSample(label, bytes(CODE_BYTES), feature) for _ in range(count)])
    store.keep_thumbnails({sample.id: b"%d" % (sample.id % 10) * size for sample in stored})
    return [sample.id for sample in stored]


def test_the_newest_of_each_class_have_one() -> None:
    store = make_store(None, 100)
    ants, bees = teach(store, "ant", 20), teach(store, "bee", 3)
    assert store.thumbnails.by_class() == {1: ants[:-13:-1], 2: bees[::-1]}
    assert store.thumbnails.get(ants[0]) is None
    assert store.thumbnails.get(ants[-1]) == b"0" * 10
    assert store.thumbnails.bytes() == 150


def test_they_take_a_tenth_of_the_budget_at_most_and_samples_make_room_for_them() -> None:
    store = make_store(None, 20)  # 2,000 bytes: 200 for thumbnails
    for label in ("ant", "bee", "cat", "dog"):
        teach(store, label, 10, size=25)
        assert store.thumbnails.bytes() <= 200
        assert store.bytes_used <= 20 * ONE
        assert len(store) == sum(record.stored for record in store.classes())
    assert len(store) == 18
    assert all(store.samples.class_of(some) == key for key, ids in store.thumbnails.by_class().items() for some in ids)


def test_where_there_is_no_room_for_all_the_class_with_most_loses_its_oldest() -> None:
    store = make_store(None, 40)  # 4,000 bytes: 400 for thumbnails
    ants, bees, cats = (teach(store, label, count, size=40) for label, count in (("ant", 3), ("bee", 2), ("cat", 12)))
    assert store.thumbnails.by_class() == {1: ants[::-1], 2: bees[::-1], 3: cats[:-6:-1]}


def test_a_picture_that_is_larger_than_their_room_is_not_kept() -> None:
    store = make_store(None, 1)
    teach(store, "ant", 1, size=50)
    assert (store.thumbnails.bytes(), len(store)) == (0, 1)
    teach(store, "bee", 2, size=10)
    assert len(store) == 1


def test_they_go_with_their_samples(tmp_path: Path) -> None:
    store = make_store(tmp_path / "s", 100)
    ants, bees = teach(store, "ant", 3), teach(store, "bee", 3)
    with store.sleeping():
        store.changes.merge("bee", "ant", lambda _, state: state)
        assert store.thumbnails.by_class() == {1: bees[::-1] + ants[::-1]}
        store.changes.forget_sample(bees[0], np.ones(3, np.float32), lambda _, state: state)
        assert store.thumbnails.get(bees[0]) is None
        store.changes.forget_class("ant", lambda _, state: state)
    assert store.thumbnails.by_class() == {}
    store.keep_thumbnails({99: b"of nobody"})
    assert store.thumbnails.bytes() == 0
    store.close()
    assert check_store(tmp_path / "s") == []


def test_dropped_they_are_in_no_file(tmp_path: Path) -> None:
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
