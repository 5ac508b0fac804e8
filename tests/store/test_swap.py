"""The activation of a generation, with what was taught since it was made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pytest

from siesta.errors import BadInput
from siesta.store import Store
from tests.store.stores import make_store, sample, weights


class FirstBytes:
    """Sums whose z is the first byte of the codes; `teach` runs while the first batch is embedded."""

    def __init__(self, store: Store, teach: int) -> None:
        self.store = store
        self.teach = teach
        self.sums: dict[int, list[int]] = {}

    def statistics(self) -> None:
        return None

    def add(
        self,
        _ids: npt.NDArray[np.int64],
        classes: npt.NDArray[np.int32],
        codes: npt.NDArray[np.uint8],
        _held: npt.NDArray[np.bool_],
    ) -> None:
        for class_id, first in zip(classes.tolist(), codes[:, 0].tolist(), strict=True):
            self.sums.setdefault(class_id, []).append(first)
        for number in range(self.teach):
            self.store.add([sample("bee", 500 + number)])
        self.teach = 0

    def totals(self, taught: Mapping[int, int]) -> Iterator[tuple[int, int, npt.NDArray[np.float64]]]:
        for class_id, values in self.sums.items():
            assert taught[class_id] >= len(values)
            yield class_id, len(values), np.array([float(sum(values))])


def test_samples_taught_since_are_summed_with_the_new_top_even_during_the_swap() -> None:
    store = make_store(capacity=1000)
    store.add([sample("ant", number) for number in range(3)])
    with store.sleeping():
        generation = store.generations.add(weights(1), store.snapshot().newest, {})
        new = [sample("bee", 100 + number) for number in range(300)]
        store.add(new)
        store.swap.activate(generation, FirstBytes(store, teach=4))
    (recent,) = store.classes.recent([1, 2])
    expected = sum(entry.codes[0] for entry in [*new, *(sample("bee", 500 + number) for number in range(4))])
    assert (recent.class_id, recent.count, recent.total.tolist()) == (2, 304, [float(expected)])
    assert store.generations.active() == 1
    assert store.row_snapshot().generation.in_use


def test_rehearsals_are_counted_with_repeats() -> None:
    store = make_store()
    store.add([sample("ant", number) for number in range(3)])
    with store.sleeping():
        generation = store.generations.add(weights(1), 3, {})
        store.swap.activate(generation, FirstBytes(store, teach=0), np.array([1, 3, 3, 99]))
    memory = store.samples.memory()
    assert dict(zip(memory.ids.tolist(), memory.rehearsed.tolist(), strict=True)) == {1: 1, 2: 0, 3: 2}


def test_weights_are_activated_asleep_only(store: Store) -> None:
    with pytest.raises(BadInput, match="only inside"):
        store.swap.activate(0, FirstBytes(store, teach=0))
    with pytest.raises(BadInput, match="only inside"):
        store.generations.add(weights(1), 0, {})
