"""A state machine compares a store with a simple model; it cuts across samples, classes, eviction and swap."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from siesta.errors import BadInput
from tests.store.stores import (
    LABELS,
    SAMPLE_BYTES,
    make_store,
    sample,
    swap,
    weights,
)


@dataclass
class ModelClass:
    """What the model remembers of one class."""

    id: int
    taught: int = 0
    ids: set[int] = field(default_factory=set)
    ranked: list[int] = field(default_factory=list)
    recent: list[npt.NDArray[np.float32]] = field(default_factory=list)
    slept_on: bool = False


class StoreAgainstModel(RuleBasedStateMachine):
    """Any order of adds, swaps and ranks: the budget holds, the largest class pays, nothing else is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.classes: dict[str, ModelClass] = {}
        self.codes: dict[int, bytes] = {}
        self.rehearsed: dict[int, int] = {}
        self.last_id = self.number = self.generation = 0

    @initialize(capacity=st.integers(1, 9), seed=st.integers(0, 3))
    def start(self, capacity: int, seed: int) -> None:
        self.capacity = capacity
        self.store = make_store(capacity=capacity, seed=seed)

    def _largest(self) -> ModelClass:
        return min(self.classes.values(), key=lambda kept: (-len(kept.ids), kept.id))

    @rule(label=st.sampled_from(LABELS))
    def add_one(self, label: str) -> None:
        self.number += 1
        new = sample(label, self.number)
        victim = self._largest() if len(self.codes) == self.capacity else None
        (stored,) = self.store.add([new])
        assert stored.id > self.last_id
        self.last_id = stored.id
        if victim is not None:
            old = sorted(self.codes)
            present, _ = self.store.samples.get(np.array(old, dtype=np.int64))
            evicted = [sample_id for sample_id, there in zip(old, present, strict=True) if not there]
            assert len(evicted) == 1
            assert set(evicted) <= ({victim.ranked.pop()} if victim.ranked else victim.ids)
            victim.ids -= set(evicted)
            del self.codes[evicted[0]], self.rehearsed[evicted[0]]
        kept = self.classes.setdefault(label, ModelClass(stored.class_id))
        assert stored.class_id == kept.id
        assert sorted(entry.id for entry in self.classes.values()) == [entry.id for entry in self.classes.values()]
        kept.ids.add(stored.id)
        kept.taught += 1
        kept.recent.append(new.feature)
        self.codes[stored.id] = new.codes
        self.rehearsed[stored.id] = 0

    @rule(data=st.data())
    def swap(self, data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.sampled_from(range(1, self.last_id + 2)), max_size=8))
        self.generation += 1
        swap(self.store, weights(self.generation), np.array(ids, dtype=np.int64), {"n": self.generation})
        for sample_id in ids:
            if sample_id in self.rehearsed:
                self.rehearsed[sample_id] += 1
        for kept in self.classes.values():
            kept.recent = []
            kept.slept_on = True

    @rule(data=st.data())
    def rank(self, data: st.DataObject) -> None:
        order = data.draw(st.permutations(sorted(self.codes)))
        self.store.rank(np.array(order, dtype=np.int64))
        for kept in self.classes.values():
            kept.ranked = [sample_id for sample_id in order if sample_id in kept.ids]

    @rule(number=st.integers(0, 10))
    def refused_add(self, number: int) -> None:
        with pytest.raises(BadInput):
            self.store.add([sample("ant", number), sample("new one", number), sample("\n", number)])

    @invariant()
    def the_budget_holds(self) -> None:
        assert self.store.budget.bytes_used() == len(self.codes) * SAMPLE_BYTES <= self.store.settings["memory_bytes"]
        assert len(self.store) == len(self.codes) <= self.capacity == self.store.budget.capacity

    @invariant()
    def nothing_else_is_lost(self) -> None:
        memory = self.store.samples.memory()
        found = dict(zip(memory.ids.tolist(), memory.rehearsed.tolist(), strict=True))
        assert found == self.rehearsed
        present, codes = self.store.samples.get(memory.ids)
        assert present.all()
        assert [row.tobytes() for row in codes] == [self.codes[sample_id] for sample_id in memory.ids.tolist()]
        owners = {sample_id: kept.id for kept in self.classes.values() for sample_id in kept.ids}
        assert dict(zip(memory.ids.tolist(), memory.classes.tolist(), strict=True)) == owners
        assert set(memory.new_classes.tolist()) == {kept.id for kept in self.classes.values() if not kept.slept_on}

    @invariant()
    def counts_and_slots_agree(self) -> None:
        records = {record.label: record for record in self.store.classes.all()}
        assert records.keys() == self.classes.keys()
        for label, kept in self.classes.items():
            assert (records[label].id, records[label].taught, records[label].stored) == (
                kept.id,
                kept.taught,
                len(kept.ids),
            )
            rows = self.store.session.connection.execute("SELECT slot FROM samples WHERE class_id = ?", (kept.id,))
            assert sorted(row[0] for row in rows) == list(range(len(kept.ids)))

    @invariant()
    def sums_are_those_of_numpy(self) -> None:
        found = {
            recent.label: recent for recent in self.store.classes.recent(kept.id for kept in self.classes.values())
        }
        assert found.keys() == {label for label, kept in self.classes.items() if kept.recent}
        for label, recent in found.items():
            taught = np.array(self.classes[label].recent, dtype=np.float64)
            assert recent.count == len(taught)
            np.testing.assert_array_equal(recent.total, np.add.accumulate(taught)[-1])

    @invariant()
    def the_newest_weights_are_in_use(self) -> None:
        assert self.store.generations.active() == self.generation
        assert np.array_equal(self.store.snapshot().weights["head"]["h"], np.array([self.generation]))
        assert [report["n"] for report in self.store.generations.reports()] == list(range(1, self.generation + 1))

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()


StoreAgainstModel.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


test_the_store_against_a_model = StoreAgainstModel.TestCase
