"""Which sample is evicted."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from siesta.rng import Purpose, generator
from siesta.store import Store
from siesta.store.check import check_store
from tests.store.stores import (
    everything,
    make_store,
    sample,
)


def test_of_equally_large_classes_the_oldest_loses_a_sample(store: Store) -> None:
    ids = [entry.id for entry in store.add([sample(label, n) for n, label in enumerate(["bee", "ant", "ant", "bee"])])]
    store.add([sample("cat", 4)])
    store.add([sample("cat", 5)])
    assert [(record.label, record.stored) for record in store.classes.all()] == [("bee", 1), ("ant", 2), ("cat", 2)]
    present, _ = store.samples.get(np.array(ids))
    assert present.sum() == 3
    assert present[1:3].all()


def test_eviction_is_random_but_follows_the_seed() -> None:
    def survivors(seed: int) -> list[int]:
        made = make_store(capacity=6, seed=seed)
        made.add([sample("ant", number) for number in range(40)])
        ids: list[int] = sorted(made.samples.memory().ids.tolist())
        made.close()
        return ids

    assert survivors(0) == survivors(0)
    assert len({tuple(survivors(seed)) for seed in range(8)}) > 4
    old = sum(sample_id <= 34 for seed in range(8) for sample_id in survivors(seed))
    assert 0 < old < 48  # neither first-in-first-out nor the newest never kept


def test_ranked_samples_are_evicted_from_the_last_of_the_largest_class_on(store: Store) -> None:
    labels = ["ant", "bee", "ant", "ant", "bee"]
    ant, bee, other, last, second = (entry.id for entry in store.add(list(map(sample, labels, range(5)))))
    store.rank(np.array([second, other, bee, last, ant]))
    for new, gone in ((5, ant), (6, last), (7, bee)):
        store.add([sample("cat", new)])
        assert gone not in store.samples.ids()
    assert set(store.samples.ids().tolist()) == {other, second, 6, 7, 8}


def test_samples_without_a_rank_outlast_the_ranked_ones_of_their_class_and_go_at_random_then() -> None:
    def survivors(seed: int) -> list[int]:
        store = make_store(capacity=6, seed=seed)
        store.add([sample("ant", number) for number in range(6)])  # ids 1 to 6
        store.rank(np.array([3, 1, 4, 6, 5, 2]))
        store.add([sample("ant", number) for number in range(6, 10)])
        assert store.samples.ids().tolist() == [1, 3, 7, 8, 9, 10]
        store.add([sample("ant", number) for number in range(10, 14)])
        ids = store.samples.ids().tolist()
        store.close()
        assert min(ids) > 6, "the ranked ones are gone"
        return list(ids)

    assert survivors(0) == survivors(0)
    assert len({tuple(survivors(seed)) for seed in range(8)}) > 4


def test_a_rank_is_found_again_and_the_store_is_whole(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    ids = [entry.id for entry in store.add([sample("ant", number) for number in range(5)])]
    store.rank(np.array(ids[::-1]))
    store.close()
    with closing(Store.open(tmp_path / "store")) as again:
        again.add([sample("ant", 5)])
        assert again.samples.ids().tolist() == [2, 3, 4, 5, 6]
    assert check_store(tmp_path / "store") == []


def test_a_new_rank_replaces_the_old_one(store: Store) -> None:
    store.add([sample("ant", number) for number in range(5)])
    store.rank(np.array([1, 2, 3, 4, 5]))
    store.rank(np.array([5, 4, 3, 2, 1]))
    store.add([sample("ant", 5)])
    assert store.samples.ids().tolist() == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("ids", [[1, 2], [1, 2, 3, 3], [1, 2, 4], []])
def test_a_rank_needs_every_stored_sample_once(store: Store, ids: list[int]) -> None:
    store.add([sample("ant", number) for number in range(3)])
    before = everything(store)
    with pytest.raises(ValueError, match="each of the 3 stored samples once"):
        store.rank(np.array(ids, dtype=np.int64))
    assert everything(store) == before and "ranked" not in store.settings


@pytest.mark.parametrize("seed", [0, 7])
def test_random_eviction_can_be_replayed(seed: int) -> None:
    store = make_store(capacity=4, seed=seed)
    slots: list[int] = []
    for sample_id in range(1, 30):
        if len(slots) == 4:
            slot = int(generator(seed, Purpose.EVICTION, sample_id - 1).integers(4))
            slots[slot] = slots[-1]
            slots.pop()
        slots.append(sample_id)
        store.add([sample("ant", sample_id)])
        assert store.samples.ids().tolist() == sorted(slots)
    store.close()
