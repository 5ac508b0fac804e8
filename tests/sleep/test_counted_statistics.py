"""Which samples new statistics count, and in what order."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest

from siesta.contracts import Codes
from siesta.sleep import counted_statistics
from siesta.sleep.counted_statistics import CountedStatistics, samples_to_count
from siesta.store import Store
from tests.store.stores import WIDTH, make_store, sample


@pytest.fixture
def store() -> Store:
    """Return a store with 60 samples of one class and 10 of another; five of the first are held out."""
    made = make_store(capacity=100, held_out=True)
    made.add([sample("ant", number) for number in range(60)])
    made.add([sample("bee", number) for number in range(10)])
    return made


def features(codes: Codes) -> npt.NDArray[np.float32]:
    return np.repeat(codes[:, :1] + 1, WIDTH, axis=1).astype(np.float32)


def test_all_samples_count_but_those_that_are_held_out_or_too_new(store: Store) -> None:
    ids, classes = samples_to_count(store, newest=65)
    held = store.samples.held_out(65)[0]
    assert len(held) == 5
    assert sorted(ids.tolist()) == sorted(set(range(1, 66)) - set(held.tolist()))
    assert classes.tolist() == store.samples.classes_of(ids).tolist()


def test_any_first_part_has_about_as_many_of_each_class(store: Store) -> None:
    _, classes = samples_to_count(store, newest=70)
    assert Counter(classes[:16].tolist()) == {1: 8, 2: 8}


def test_of_many_samples_a_part_of_each_class_counts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_statistics, "_MOST_SAMPLES", 50)
    ids, classes = samples_to_count(store, newest=70)
    assert Counter(classes.tolist()) == {1: 25, 2: 10}
    assert samples_to_count(store, newest=70)[0].tolist() == ids.tolist()


def test_statistics_are_those_of_the_samples_that_there_is_time_for(store: Store) -> None:
    everything = CountedStatistics.of_stored(store, features, WIDTH, 70)
    assert everything.statistics.counts.tolist() == [55, 10]
    assert len(everything.stored()[1]) == 65
    some = CountedStatistics.of_stored(store, features, WIDTH, 70, seconds=0)
    assert sum(some.statistics.counts.tolist()) == 64, "one batch"
