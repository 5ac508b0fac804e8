"""StoreEdits of samples and classes; what they do to answers is tested with the learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from siesta.errors import BadInput
from siesta.store import Generation, Store
from siesta.store.edits import StoreEdits
from tests.store.stores import sample, swap, weights


def add_ten(_: Generation, head: Mapping[str, npt.NDArray[Any]]) -> Mapping[str, npt.NDArray[Any]]:
    return {"h": head["h"] + 10}


def classes(store: Store) -> list[tuple[int, str, int, int]]:
    return [(record.id, record.label, record.taught, record.stored) for record in store.classes.all()]


def test_renaming_keeps_id_and_counts(store: Store) -> None:
    store.add([sample("ant", 1), sample("bee", 2)])
    with store.sleeping():
        store.edits.rename("ant", "  emmet ")
        with pytest.raises(BadInput, match="there is a class 'bee' already"):
            store.edits.rename("emmet", "bee")
        with pytest.raises(BadInput, match="has this label already"):
            store.edits.rename("bee", "bee")
    assert classes(store) == [(1, "emmet", 1, 1), (2, "bee", 1, 1)]


def test_merging_adds_counts_and_sums(store: Store) -> None:
    samples = [sample("ant", 1), sample("bee", 2), sample("ant", 3)]
    store.add(samples)
    with store.sleeping():
        store.edits.merge("ant", "bee", add_ten)
        with pytest.raises(BadInput, match="cannot be merged with itself"):
            store.edits.merge("bee", "bee", add_ten)
    assert classes(store) == [(2, "bee", 3, 3)]
    (recent,) = store.classes.recent([1, 2])
    assert recent.count == 3
    np.testing.assert_allclose(recent.total, np.sum([entry.feature for entry in samples], axis=0), rtol=1e-6)


def test_forgetting_a_sample_subtracts_it_and_removes_an_empty_class(store: Store) -> None:
    first = sample("ant", 1)
    second = sample("ant", 2)
    third = sample("bee", 3)
    store.add([first, second, third])
    with store.sleeping():
        store.edits.forget_sample(1, first.feature, add_ten)
        store.edits.forget_sample(3, third.feature, add_ten)
    assert classes(store) == [(1, "ant", 1, 1)]
    (recent,) = store.classes.recent([1, 2])
    np.testing.assert_allclose(recent.total, second.feature, rtol=1e-6)


def test_correcting_gives_a_new_id_under_the_other_label(store: Store) -> None:
    wrong = sample("ant", 1, key=5)
    store.add([wrong, sample("ant", 2)])
    with store.sleeping():
        right = sample("bee", 1, key=5)
        assert store.edits.correct(1, right, add_ten) == 3
    assert classes(store) == [(1, "ant", 1, 1), (2, "bee", 1, 1)]
    assert store.samples.known_keys([5]) == {5: 3}


def test_the_heads_of_all_generations_are_edited(store: Store) -> None:
    store.add([sample("ant", 1), sample("bee", 2)])
    swap(store, weights(1), np.array([1]), {})
    with store.sleeping():
        store.edits.forget_class("ant", add_ten)
    heads = [store.generations.read(generation)["head"]["h"].item() for generation in store.generations.all()]
    assert heads == [10, 11]
    assert np.array_equal(store.snapshot().weights["top"]["t"], weights(1)["top"]["t"])


def test_edits_are_recorded_in_order(store: Store) -> None:
    store.add([sample("ant", 1), sample("bee", 2)])
    with store.sleeping():
        store.edits.rename("ant", "emmet")
        store.edits.merge("emmet", "bee", add_ten)
    entries = [{name: value for name, value in entry.items() if name != "made"} for entry in store.edits.audit()]
    assert entries == [
        {"what": "rename", "label": "ant", "to": "emmet"},
        {"what": "merge", "label": "emmet", "into": "bee", "classes": [1, 2]},
    ]


@pytest.mark.parametrize(
    "edit", [lambda edits: edits.rename("ant", "cat"), lambda edits: edits.merge("ant", "bee", add_ten)]
)
def test_edits_are_refused_outside_of_sleeping(store: Store, edit: Callable[[StoreEdits], None]) -> None:
    store.add([sample("ant", 1), sample("bee", 2)])
    with pytest.raises(BadInput, match="only inside"):
        edit(store.edits)
    assert store.edits.audit() == []
