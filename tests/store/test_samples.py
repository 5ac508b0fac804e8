"""Reading, drawing and keys of samples."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from siesta.contracts import Ids
from siesta.errors import Damaged
from siesta.store import Store
from tests.store.stores import (
    CODE_BYTES,
    LABELS,
    execute,
    is_one_line,
    make_store,
    sample,
)


def drawn_from(store: Store, count: int, rng: np.random.Generator) -> tuple[Ids, npt.NDArray[np.int64]]:
    """Return ids drawn from a store, and the ids of their classes."""
    class_ids, sizes = store.classes.sizes()
    ids, positions = store.samples.draw(count, rng, class_ids, sizes)
    return ids, class_ids[positions]


def test_get_keeps_the_order_of_ids_and_leaves_out_evicted_ones(store: Store) -> None:
    samples = [sample("ant", number) for number in range(8)]
    ids = [entry.id for entry in store.add(samples)]
    ids_to_get = np.array([ids[7], ids[0], ids[7], 999, *ids, ids[3]])
    present, codes = store.samples.get(ids_to_get)
    left = set(store.samples.memory().ids.tolist())
    assert present.tolist() == [sample_id in left for sample_id in ids_to_get.tolist()]
    by_id = dict(zip(ids, samples, strict=True))
    assert [row.tobytes() for row in codes] == [by_id[i].codes for i in ids_to_get.tolist() if i in left]


def test_draws_are_distinct_stored_samples_with_their_classes() -> None:
    store = make_store(capacity=9)
    assert [len(column) for column in drawn_from(store, 3, np.random.default_rng(0))] == [0, 0]
    store.add([sample(LABELS[number % 5 % 3], number) for number in range(40)])  # most of them are evicted again
    memory = store.samples.memory()
    owners = dict(zip(memory.ids.tolist(), memory.classes.tolist(), strict=True))
    for count in (0, 1, 4, 9, 20):
        ids, classes = drawn_from(store, count, np.random.default_rng(count))
        assert len(set(ids.tolist())) == len(ids) == min(count, 9)
        assert [owners[sample_id] for sample_id in ids.tolist()] == classes.tolist()


def test_draws_are_uniform_over_samples_whatever_the_size_of_their_class() -> None:
    store = make_store(capacity=12)
    store.add([sample(label, number) for number, label in enumerate(["ant"] * 7 + ["bee"] * 4 + ["cat"])])
    drawn = np.concatenate([drawn_from(store, 3, np.random.default_rng(seed))[0] for seed in range(800)])
    counts = np.bincount(drawn, minlength=13)[1:]
    assert counts.sum() == 2400
    assert ((counts - 200) ** 2 / 200).sum() < 24.7  # the 99 % quantile of chi-square with 11 degrees of freedom
    first = np.bincount(
        [drawn_from(store, 3, np.random.default_rng(seed))[0][0] for seed in range(1200)], minlength=13
    )[1:]
    assert ((first - 100) ** 2 / 100).sum() < 24.7  # in random order, too


def test_draws_are_deterministic_given_generator_and_contents(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", capacity=6)
    store.add([sample(LABELS[number % 3], number) for number in range(30)])
    drawn = [drawn_from(store, 4, np.random.default_rng(seed))[0].tolist() for seed in range(5)]
    store.close()
    store = Store.open(tmp_path / "store")
    assert [drawn_from(store, 4, np.random.default_rng(seed))[0].tolist() for seed in range(5)] == drawn


def test_a_lost_sample_is_damage(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    store.add([sample("ant", 0), sample("ant", 1)])
    store.close()
    with sqlite3.connect(tmp_path / "store" / "store.sqlite") as connection:
        connection.execute("DELETE FROM samples WHERE id = 1")
    connection.close()
    with pytest.raises(Damaged, match="has lost a sample"):
        drawn_from(Store.open(tmp_path / "store"), 2, np.random.default_rng(0))


def test_no_ids_give_no_codes(store: Store) -> None:
    present, codes = store.samples.get(np.zeros(0, dtype=np.int64))
    assert present.shape == (0,)
    assert codes.shape == (0, CODE_BYTES)
    assert len(store.samples.memory().ids) == 0
    assert store.add([]) == []


def test_keys_outlive_their_samples(store: Store) -> None:
    store.add([sample("ant", number, key=number - 10) for number in range(20)])
    assert len(store) == 5
    assert set(store.samples.known_keys(range(-30, 30))) == set(range(-10, 10))
    assert not store.samples.known_keys([-(2**63), 2**63 - 1])


def test_a_flipped_byte_of_a_sample_is_noticed_and_the_sample_named(path: Path) -> None:
    execute(path, "UPDATE codes SET codes = x'00112233' WHERE id = (SELECT max(id) FROM codes)")
    with_damage = Store.open(path)
    ids = np.sort(with_damage.samples.memory().ids)
    assert with_damage.samples.get(ids[:-1])[0].all()
    with pytest.raises(Damaged, match=f"sample {ids[-1]} ") as caught:
        with_damage.samples.get(ids)
    assert is_one_line(caught.value)
    with_damage.close()


def test_codes_under_a_wrong_id_are_noticed(path: Path) -> None:
    execute(path, "UPDATE codes SET id = 1000 WHERE id = (SELECT max(id) FROM codes)")
    store = Store.open(path)
    with pytest.raises(Damaged, match="sample 1000 "):
        store.samples.get(np.array([1000]))
    store.close()


def test_discarded_samples_are_gone_but_stay_counted_as_taught(store: Store) -> None:
    ids = [entry.id for entry in store.add([sample(label, n) for n, label in enumerate(["ant", "bee", "ant", "ant"])])]
    store.discard(np.array([ids[0], ids[1]]))
    assert len(store) == 2 and store.samples.ids().tolist() == [ids[2], ids[3]]
    assert [(record.taught, record.stored) for record in store.classes.all()] == [(3, 2), (1, 0)]
    present, _ = store.samples.get(np.array(ids))
    assert present.tolist() == [False, False, True, True]
    store.add([sample("ant", 9)])
    store.rank(np.array([ids[3], ids[2], store.samples.newest()]))  # slots have no gaps
    with pytest.raises(Damaged, match="has lost a sample"):
        store.discard(np.array([ids[0]]))
    assert len(store) == 3
