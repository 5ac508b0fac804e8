"""Fixtures: an empty store, and the folder of a taught one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from siesta.store import Store
from tests.store.stores import (
    make_store,
    sample,
    swap,
    weights,
)


@pytest.fixture(params=["disk", "ram"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = make_store(tmp_path / "store" if request.param == "disk" else None)
    yield made
    made.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store with six samples taught, five stored."""
    store = make_store(tmp_path / "s")
    store.add([sample(label, number) for number, label in enumerate(["ant", "bee", "ant", "cat", "bee", "ant"])])
    swap(store, weights(1), np.array([6]), {})
    store.add([sample("bee", 7)])
    store.close()
    return tmp_path / "s"
