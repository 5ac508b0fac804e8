"""The running mean of the codec's error."""

from __future__ import annotations

import numpy as np
import pytest

from siesta.store import Store
from tests.store.stores import sample


def test_the_first_hundred_errors_have_their_mean(store: Store) -> None:
    errors = np.random.default_rng(0).random(100)
    assert store.drift.read() == (0, 0.0)
    for number, error in enumerate(errors):
        store.add([sample("ant", number)], error=float(error))
    count, mean = store.drift.read()
    assert count == 100
    assert mean == pytest.approx(errors.mean())


def test_later_errors_are_weighted_exponentially(store: Store) -> None:
    for number in range(100):
        store.add([sample("ant", number)], error=1.0)
    for number in range(50):
        store.add([sample("ant", number)], error=2.0)
    count, mean = store.drift.read()
    assert count == 150
    assert mean == pytest.approx(2 - 0.99**50)
