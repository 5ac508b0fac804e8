"""Snapshots, also while another process swaps the weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from siesta.errors import Damaged
from siesta.store import Generation, Store
from siesta.store.generations import Generations
from siesta.store.tensor_files import Tensors
from tests.store.stores import make_store, sample, swap, weights


def test_a_snapshot_has_rows_and_weights_of_one_generation(store: Store) -> None:
    store.add([sample("ant", 1)])
    swap(store, weights(1), np.array([1]), {})
    store.add([sample("bee", 2), sample("bee", 3)])
    snapshot = store.snapshot()
    assert (snapshot.generation.number, snapshot.newest) == (1, 3)
    assert [record.label for record in snapshot.classes] == ["ant", "bee"]
    assert [(recent.label, recent.count) for recent in snapshot.recent] == [("bee", 2)]
    assert np.array_equal(snapshot.weights["head"]["h"], np.array([1]))


def test_a_snapshot_during_a_swap_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = make_store(tmp_path / "s")
    reader = Store.open(tmp_path / "s", "read")
    read = Generations.read
    swaps = [1, 2]

    def swap_first(generations: Generations, generation: Generation) -> dict[str, Tensors]:
        if swaps:
            swap(writer, weights(swaps.pop(0)), np.array([], dtype=np.int64), {})
            raise Damaged("the files were removed meanwhile")
        return read(generations, generation)

    monkeypatch.setattr(Generations, "read", swap_first)
    snapshot = reader.snapshot()
    assert snapshot.generation.number == 2
    assert np.array_equal(snapshot.weights["head"]["h"], np.array([2]))
