"""The stored statistics of a head: sums of a moment, and the samples counted since."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from siesta.errors import Damaged
from siesta.store import Store
from siesta.store.check import check_store
from tests.store.stores import make_store, sample


def arrays(classes: int, value: float = 1.0) -> dict[str, npt.NDArray[np.float64]]:
    """Return sums of so many classes over features of length two."""
    ids = np.arange(1, classes + 1)
    return {"class_ids": ids, "counts": 2 * ids, "sums": np.full((classes, 2), value), "gram": np.full(3, value)}


def counting(store: Store) -> Store:
    """Return the store with statistics of no samples."""
    with store.session.transaction():
        store.statistics.replace(arrays(0), np.zeros(0, np.int64))
    return store


def test_a_store_without_statistics_counts_nothing() -> None:
    store = make_store()
    store.add([sample("ant", 1)])
    assert store.statistics.number() is None
    assert store.statistics.read().number is None
    assert store.samples.counted().tolist() == []
    assert store.statistics.total_bytes() == 0


def test_samples_are_counted_in_their_transaction_except_held_out_ones(tmp_path: Path) -> None:
    store = counting(make_store(tmp_path / "s", capacity=100, held_out=True))
    added = store.add([sample("ant", number) for number in range(30)])
    held = {entry.id for entry in added if entry.held}
    assert held
    since = store.statistics.read().since
    assert set(since.ids.tolist()) == {entry.id for entry in added} - held == set(store.samples.counted().tolist())
    np.testing.assert_array_equal(since.features[0], sample("ant", 0).feature)
    with pytest.raises(RuntimeError), store.session.transaction():
        store.statistics.count(999, 1, np.ones(2, np.float32))
        raise RuntimeError
    assert len(store.statistics.read().since.ids) == len(since.ids)


def test_a_reader_gets_only_what_has_changed() -> None:
    store = counting(make_store())
    store.add([sample("ant", 1), sample("bee", 2)])
    first = store.statistics.read()
    assert first.arrays is not None
    store.add([sample("bee", 3)])
    later = store.statistics.read(first.number, 2)
    assert (later.arrays, later.since.ids.tolist(), later.since.classes.tolist()) == (None, [3], [2])


def test_folding_moves_the_oldest_samples_into_the_sums() -> None:
    store = counting(make_store())
    store.add([sample("ant", 1), sample("bee", 2), sample("ant", 3)])
    number = store.statistics.number()
    with store.session.transaction():
        assert store.statistics.fold(arrays(2), 2) != number
    folded = store.statistics.read(number, 3)
    assert folded.arrays is not None
    assert folded.arrays["sums"].tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert folded.since.ids.tolist() == [3]
    with store.session.transaction():
        store.statistics.fold(arrays(2, 5.0), 1)
    again = store.statistics.read().arrays
    assert again is not None
    assert again["sums"].tolist() == [[5.0, 5.0], [1.0, 1.0]], "only the sums of the class of sample 3 are written"
    assert again["gram"].tolist() == [5.0] * 3


def test_an_edit_replaces_everything_and_keeps_which_samples_are_counted() -> None:
    store = counting(make_store())
    store.add([sample("ant", 1), sample("bee", 2)])
    with store.session.transaction():
        store.statistics.edit(arrays(1))
    read = store.statistics.read()
    assert read.arrays is not None
    assert (read.arrays["class_ids"].tolist(), len(read.since.ids)) == ([1], 0)
    assert store.samples.counted().tolist() == [1, 2]


def test_replacing_counts_the_given_samples_only_and_clearing_none() -> None:
    store = counting(make_store())
    store.add([sample("ant", 1), sample("bee", 2)])
    number = store.statistics.number()
    with store.session.transaction():
        store.statistics.replace(arrays(1), np.array([2]))
    assert store.samples.counted().tolist() == [2] == store.samples.counted(2).tolist()
    assert store.statistics.number() != number
    assert store.statistics.total_bytes() == 8 * (3 + 2)
    with store.session.transaction():
        store.statistics.clear()
    assert (store.statistics.number(), store.samples.counted().tolist()) == (None, [])


DAMAGE = [
    *(f"UPDATE {table} SET total = zeroblob(length(total))" for table in ("gram", "class_sums")),
    "UPDATE counted_since SET feature = zeroblob(length(feature))",
    "UPDATE class_sums SET count = count + 64 WHERE class_id = 2",
    "UPDATE class_sums SET count = 'x'",
    "DELETE FROM class_sums WHERE class_id = 2",
    "UPDATE gram SET number = number + 1",
    "UPDATE counted_since SET class_id = 1",
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_statistics_are_never_used(tmp_path: Path, damage: str) -> None:
    store = counting(make_store(tmp_path / "s"))
    store.add([sample("ant", 1), sample("bee", 2), sample("bee", 3)])
    with store.session.transaction():
        store.statistics.fold(arrays(2), 2)
    store.statistics.read()
    store.session.connection.execute(damage)
    with pytest.raises(Damaged, match="siesta repair"):
        store.statistics.read()
    store.close()
    assert [found.kind for found in check_store(tmp_path / "s")] == ["statistics"]
