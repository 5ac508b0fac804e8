"""Labels, counts and sums of classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from siesta.errors import BadInput, Damaged
from siesta.store import Store
from tests.store.stores import execute, sample, swap, weights


def test_labels_in_another_unicode_form_are_the_same_class(store: Store) -> None:
    stored = store.add([sample("Caf\u00e9", 1), sample(" Cafe\u0301 ", 2), sample("caf\u00e9", 3)])
    assert [entry.class_id for entry in stored] == [1, 1, 2]
    assert [record.label for record in store.classes.all()] == ["Caf\u00e9", "caf\u00e9"]


def test_a_class_that_comes_back_after_a_sleep_is_not_new(store: Store) -> None:
    store.add([sample("ant", 1), sample("bee", 2)])
    assert store.samples.memory().new_classes.tolist() == [1, 2]
    assert store.classes.since_sleep() == (2, 2)
    swap(store, weights(1), np.array([1]), {})
    store.add([sample("ant", 3), sample("cat", 4)])
    assert store.samples.memory().new_classes.tolist() == [3]
    assert store.classes.since_sleep() == (1, 2)
    assert [(recent.class_id, recent.count) for recent in store.classes.recent([1, 2, 3])] == [(1, 1), (3, 1)]


def test_a_class_is_found_by_its_label(store: Store) -> None:
    store.add([sample("ant", 1), sample("bee", 2), sample("bee", 3)])
    record = store.classes.named("bee")
    assert (record.id, record.taught, record.stored) == (2, 2, 2)
    with pytest.raises(BadInput, match="there is no class 'cat'"):
        store.classes.named("cat")


def test_a_damaged_sum_is_refused(path: Path) -> None:
    execute(path, "UPDATE recent SET total = zeroblob(24)")
    store = Store.open(path)
    with pytest.raises(Damaged, match="the sums of class 'bee'"):
        store.classes.recent([2])
    with pytest.raises(Damaged, match="the sums of class 'bee'"):
        store.add([sample("bee", 9)])
