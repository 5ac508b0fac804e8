"""The store against a model of what it promises, and against a hostile world."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from siesta.errors import BadInput, Busy, Damaged, SiestaError
from siesta.store import NewSample, Store
from siesta.store.check import check_store
from siesta.store.folder import Access
from siesta.store.store import OVERHEAD_BYTES, Stored

CODE_BYTES = 4
WIDTH = 3
ONE = CODE_BYTES + OVERHEAD_BYTES
LABELS = ["ant", "bee", "cat"]
FORKSERVER = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload(["siesta.learner"])  # torch is imported once for all children


def make_store(path: Path | None = None, capacity: int = 5, seed: int = 0, code_bytes: int = CODE_BYTES) -> Store:
    return Store.create(
        path,
        settings={
            "code_bytes": code_bytes,
            "memory_bytes": capacity * (code_bytes + OVERHEAD_BYTES) + 7,
            "seed": seed,
        },
        constant={"bottom": {"w": torch.arange(4.0)}},
        generation=weights(0),
    )


def weights(number: int) -> dict[str, dict[str, torch.Tensor]]:
    return {"top": {"t": torch.full((2, 2), float(number))}, "head": {"h": torch.tensor([number])}}


class NoSums:
    """For stores in which nothing is taught while somebody sleeps."""

    def take(self, *_: object) -> None:
        raise AssertionError("something was taught meanwhile")

    def totals(self, *_: object) -> list[tuple[int, int, npt.NDArray[np.float64]]]:
        return []


def swap(
    store: Store, tensors: Mapping[str, Mapping[str, torch.Tensor]], rehearsed: npt.NDArray[np.int64], report: Any
) -> None:
    """A sleep during which nothing was taught."""
    with store.sleeping():
        number = store.add_generation(tensors, store.snapshot().newest, report)
        store.use_generation(number, NoSums(), rehearsed)


def sample(label: str, number: int, code_bytes: int = CODE_BYTES, key: int | None = None) -> NewSample:
    """Sample `number`, with codes and a feature that no other number has."""
    rng = np.random.default_rng(number)
    return NewSample(label, rng.bytes(code_bytes), rng.standard_normal(WIDTH).astype(np.float32), key)


def everything(store: Store) -> tuple[Any, ...]:
    """All that can be seen of a store's samples and classes, in one comparable value."""
    memory = store.memory()
    order = np.argsort(memory.ids)
    present, codes = store.get(memory.ids[order])
    assert present.all()
    columns = (memory.ids, memory.classes, memory.rehearsed)
    recent = [
        (entry.class_id, entry.label, entry.count, entry.total.tobytes())
        for entry in store.recent(record.id for record in store.classes())
    ]
    return (
        *(column[order].tolist() for column in columns),
        codes.tobytes(),
        sorted(memory.new_classes.tolist()),
        store.classes(),
        recent,
        len(store),
    )


@pytest.fixture(params=["disk", "ram"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = make_store(tmp_path / "store" if request.param == "disk" else None)
    yield made
    made.close()


# -- against a model ---------------------------------------------------------------------------------------------------


@dataclass
class Kept:
    """What the model remembers of one class."""

    id: int
    taught: int = 0
    ids: set[int] = field(default_factory=set)
    recent: list[npt.NDArray[np.float32]] = field(default_factory=list)
    slept_on: bool = False


class StoreAgainstModel(RuleBasedStateMachine):
    """Any order of adds and swaps: the budget holds, the largest class pays, nothing else is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.classes: dict[str, Kept] = {}
        self.codes: dict[int, bytes] = {}
        self.rehearsed: dict[int, int] = {}
        self.last_id = self.number = self.generation = 0

    @initialize(capacity=st.integers(1, 9), seed=st.integers(0, 3))
    def start(self, capacity: int, seed: int) -> None:
        self.capacity = capacity
        self.store = make_store(capacity=capacity, seed=seed)

    def _pays(self) -> Kept:
        return min(self.classes.values(), key=lambda kept: (-len(kept.ids), kept.id))

    @rule(label=st.sampled_from(LABELS))
    def add_one(self, label: str) -> None:
        self.number += 1
        new = sample(label, self.number)
        victim = self._pays() if len(self.codes) == self.capacity else None
        (stored,) = self.store.add([new])
        assert stored.id > self.last_id
        self.last_id = stored.id
        if victim is not None:
            old = sorted(self.codes)
            present, _ = self.store.get(np.array(old, dtype=np.int64))
            gone = [sample_id for sample_id, there in zip(old, present, strict=True) if not there]
            assert len(gone) == 1
            assert set(gone) <= victim.ids
            victim.ids -= set(gone)
            del self.codes[gone[0]], self.rehearsed[gone[0]]
        kept = self.classes.setdefault(label, Kept(stored.class_id))
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

    @rule(number=st.integers(0, 10))
    def refused_add(self, number: int) -> None:
        with pytest.raises(BadInput):
            self.store.add([sample("ant", number), sample("new one", number), sample("\n", number)])

    @invariant()
    def the_budget_holds(self) -> None:
        assert self.store.bytes_used == len(self.codes) * ONE <= self.store.settings["memory_bytes"]
        assert len(self.store) == len(self.codes) <= self.capacity == self.store.capacity

    @invariant()
    def nothing_else_is_lost(self) -> None:
        memory = self.store.memory()
        found = dict(zip(memory.ids.tolist(), memory.rehearsed.tolist(), strict=True))
        assert found == self.rehearsed
        present, codes = self.store.get(memory.ids)
        assert present.all()
        assert [row.tobytes() for row in codes] == [self.codes[sample_id] for sample_id in memory.ids.tolist()]
        owners = {sample_id: kept.id for kept in self.classes.values() for sample_id in kept.ids}
        assert dict(zip(memory.ids.tolist(), memory.classes.tolist(), strict=True)) == owners
        assert set(memory.new_classes.tolist()) == {kept.id for kept in self.classes.values() if not kept.slept_on}

    @invariant()
    def counts_and_slots_agree(self) -> None:
        records = {record.label: record for record in self.store.classes()}
        assert records.keys() == self.classes.keys()
        for label, kept in self.classes.items():
            assert (records[label].id, records[label].taught, records[label].stored) == (
                kept.id,
                kept.taught,
                len(kept.ids),
            )
            rows = self.store._connection.execute("SELECT slot FROM samples WHERE class_id = ?", (kept.id,))
            assert sorted(row[0] for row in rows) == list(range(len(kept.ids)))

    @invariant()
    def sums_are_those_of_numpy(self) -> None:
        found = {recent.label: recent for recent in self.store.recent(kept.id for kept in self.classes.values())}
        assert found.keys() == {label for label, kept in self.classes.items() if kept.recent}
        for label, recent in found.items():
            taught = np.array(self.classes[label].recent, dtype=np.float64)
            assert recent.count == len(taught)
            np.testing.assert_array_equal(recent.total, np.add.accumulate(taught)[-1])

    @invariant()
    def the_newest_weights_are_in_use(self) -> None:
        assert self.store.generation() == self.generation
        assert torch.equal(self.store.snapshot().weights["head"]["h"], torch.tensor([self.generation]))
        assert [report["n"] for report in self.store.generations.reports()] == list(range(1, self.generation + 1))

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()


StoreAgainstModel.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
test_the_store_against_a_model = StoreAgainstModel.TestCase


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    labels=st.lists(st.sampled_from(LABELS), max_size=30), cuts=st.sets(st.integers(0, 30)), capacity=st.integers(1, 8)
)
def test_adding_many_equals_adding_one_by_one(labels: list[str], cuts: set[int], capacity: int) -> None:
    one_by_one, together = make_store(capacity=capacity, seed=3), make_store(capacity=capacity, seed=3)
    samples = [sample(label, number) for number, label in enumerate(labels)]
    singly = [one_by_one.add([new])[0] for new in samples]
    edges = [0, *sorted(cut for cut in cuts if cut < len(samples)), len(samples)]
    grouped: list[Stored] = []
    for start, end in pairwise(edges):
        grouped += together.add(samples[start:end])
    assert singly == grouped
    assert everything(one_by_one) == everything(together)
    one_by_one.close()
    together.close()


@settings(max_examples=10, deadline=None)
@given(labels=st.lists(st.sampled_from(LABELS), max_size=20), seed=st.integers(0, 5))
def test_disk_and_ram_are_the_same_and_reopening_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, labels: list[str], seed: int
) -> None:
    path = tmp_path_factory.mktemp("store") / "s"
    on_disk, in_ram = make_store(path, seed=seed), make_store(seed=seed)
    for number, label in enumerate(labels):
        for each in (on_disk, in_ram):
            each.add([sample(label, number)])
        if number % 7 == 3:
            for each in (on_disk, in_ram):
                swap(each, weights(number), np.array([1, number, number]), {})
    before = everything(on_disk)
    assert before == everything(in_ram)
    on_disk.close()
    with_settings = {"code_bytes": CODE_BYTES, "seed": seed}
    for access in ("teach", "read"):
        again = Store.open(path, access)
        assert everything(again) == before
        assert again.settings.items() >= with_settings.items()
        assert again.generation() == in_ram.generation()
        assert torch.equal(again.snapshot().weights["top"]["t"], in_ram.snapshot().weights["top"]["t"])
        assert torch.equal(again.constant("bottom")["w"], torch.arange(4.0))
        again.close()
    in_ram.close()
    shutil.rmtree(path)


# -- one promise at a time ---------------------------------------------------------------------------------------------


def test_on_a_tie_the_oldest_class_pays(store: Store) -> None:
    ids = [entry.id for entry in store.add([sample(label, n) for n, label in enumerate(["bee", "ant", "ant", "bee"])])]
    store.add([sample("cat", 4)])
    store.add([sample("cat", 5)])
    assert [(record.label, record.stored) for record in store.classes()] == [("bee", 1), ("ant", 2), ("cat", 2)]
    present, _ = store.get(np.array(ids))
    assert present.sum() == 3
    assert present[1:3].all()


def test_eviction_is_random_but_follows_the_seed() -> None:
    def survivors(seed: int) -> list[int]:
        made = make_store(capacity=6, seed=seed)
        made.add([sample("ant", number) for number in range(40)])
        ids: list[int] = sorted(made.memory().ids.tolist())
        made.close()
        return ids

    assert survivors(0) == survivors(0)
    assert len({tuple(survivors(seed)) for seed in range(8)}) > 4
    old = sum(sample_id <= 34 for seed in range(8) for sample_id in survivors(seed))
    assert 0 < old < 48  # neither first-in-first-out nor the newest never kept


def test_get_keeps_the_order_asked_for_with_repeats_and_without_the_gone(store: Store) -> None:
    samples = [sample("ant", number) for number in range(8)]
    ids = [entry.id for entry in store.add(samples)]
    asked = np.array([ids[7], ids[0], ids[7], 999, *ids, ids[3]])
    present, codes = store.get(asked)
    left = set(store.memory().ids.tolist())
    assert present.tolist() == [sample_id in left for sample_id in asked.tolist()]
    by_id = dict(zip(ids, samples, strict=True))
    assert [row.tobytes() for row in codes] == [by_id[i].codes for i in asked.tolist() if i in left]


def test_draws_are_distinct_stored_samples_with_their_classes() -> None:
    store = make_store(capacity=9)
    assert [len(column) for column in store.samples.draw(3, np.random.default_rng(0))] == [0, 0]
    store.add([sample(LABELS[number % 5 % 3], number) for number in range(40)])  # most of them are gone again
    memory = store.memory()
    owners = dict(zip(memory.ids.tolist(), memory.classes.tolist(), strict=True))
    for count in (0, 1, 4, 9, 20):
        ids, classes = store.samples.draw(count, np.random.default_rng(count))
        assert len(set(ids.tolist())) == len(ids) == min(count, 9)
        assert [owners[sample_id] for sample_id in ids.tolist()] == classes.tolist()


def test_all_samples_are_drawn_alike_whatever_the_size_of_their_class() -> None:
    store = make_store(capacity=12)
    store.add([sample(label, number) for number, label in enumerate(["ant"] * 7 + ["bee"] * 4 + ["cat"])])
    drawn = np.concatenate([store.samples.draw(3, np.random.default_rng(seed))[0] for seed in range(800)])
    counts = np.bincount(drawn, minlength=13)[1:]
    assert counts.sum() == 2400
    assert ((counts - 200) ** 2 / 200).sum() < 24.7  # the 99 % quantile of chi-square with 11 degrees of freedom
    first = np.bincount(
        [store.samples.draw(3, np.random.default_rng(seed))[0][0] for seed in range(1200)], minlength=13
    )[1:]
    assert ((first - 100) ** 2 / 100).sum() < 24.7  # in random order, too


def test_a_draw_hangs_on_the_generator_and_the_contents_alone(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", capacity=6)
    store.add([sample(LABELS[number % 3], number) for number in range(30)])
    drawn = [store.samples.draw(4, np.random.default_rng(seed))[0].tolist() for seed in range(5)]
    store.close()
    store = Store.open(tmp_path / "store")
    assert [store.samples.draw(4, np.random.default_rng(seed))[0].tolist() for seed in range(5)] == drawn


def test_a_sample_that_was_lost_is_damage(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    store.add([sample("ant", 0), sample("ant", 1)])
    store.close()
    with sqlite3.connect(tmp_path / "store" / "store.sqlite") as connection:
        connection.execute("DELETE FROM samples WHERE id = 1")
    connection.close()
    with pytest.raises(Damaged, match="has lost a sample"):
        Store.open(tmp_path / "store").samples.draw(2, np.random.default_rng(0))


def test_getting_nothing_gives_nothing(store: Store) -> None:
    present, codes = store.get(np.zeros(0, dtype=np.int64))
    assert present.shape == (0,)
    assert codes.shape == (0, CODE_BYTES)
    assert len(store.memory().ids) == 0
    assert store.add([]) == []


@pytest.mark.parametrize("broken", [sample("a\nb", 9), sample("", 9), NewSample("ant", b"123", np.zeros(WIDTH, "f4"))])
def test_a_failing_add_leaves_nothing_behind(store: Store, broken: NewSample) -> None:
    store.add([sample("ant", number, key=number) for number in range(5)])
    before = everything(store)
    with pytest.raises((BadInput, ValueError)):
        store.add([sample("bee", 6, key=6), sample("ant", 7, key=7), broken, sample("cat", 8, key=8)])
    assert everything(store) == before
    assert set(store.samples.known_keys(range(9))) == set(range(5))
    assert store.add([sample("bee", 6)]) == [Stored(6, 2)]


def test_keys_outlive_their_samples(store: Store) -> None:
    store.add([sample("ant", number, key=number - 10) for number in range(20)])
    assert len(store) == 5
    assert set(store.samples.known_keys(range(-30, 30))) == set(range(-10, 10))
    assert not store.samples.known_keys([-(2**63), 2**63 - 1])


def test_labels_in_another_spelling_are_the_same_class(store: Store) -> None:
    stored = store.add([sample("Caf\u00e9", 1), sample(" Cafe\u0301 ", 2), sample("caf\u00e9", 3)])
    assert [entry.class_id for entry in stored] == [1, 1, 2]
    assert [record.label for record in store.classes()] == ["Caf\u00e9", "caf\u00e9"]


def test_a_class_that_comes_back_after_a_sleep_is_not_new(store: Store) -> None:
    store.add([sample("ant", 1), sample("bee", 2)])
    assert store.memory().new_classes.tolist() == [1, 2]
    swap(store, weights(1), np.array([1]), {})
    store.add([sample("ant", 3), sample("cat", 4)])
    assert store.memory().new_classes.tolist() == [3]
    assert [(recent.class_id, recent.count) for recent in store.recent([1, 2, 3])] == [(1, 1), (3, 1)]


def test_the_last_generations_stay_on_disk(tmp_path: Path) -> None:
    store = make_store(tmp_path / "s")
    for number in range(1, 9):
        swap(store, weights(number), np.zeros(0, dtype=np.int64), {})
    names = sorted(folder.name for folder in (tmp_path / "s" / "generations").iterdir())
    assert names == [f"{number:06d}" for number in range(4, 9)]
    assert [generation.number for generation in store.generations.all()] == list(range(4, 9))
    assert [generation.in_use for generation in store.generations.all()] == [False] * 4 + [True]
    with pytest.raises(BadInput, match="no generation 3 any more: choose from 4, 5, 6, 7, 8"):
        store.generations.get(3)
    store.close()


OF_FORMAT_2 = "DROP TABLE thumbnails; PRAGMA user_version = 2;"


def test_a_store_of_format_2_is_brought_to_todays(tmp_path: Path) -> None:
    store = make_store(tmp_path / "s", capacity=9)
    store.add([sample("ant", 1), sample("bee", 2)])
    before = everything(store)
    store.close()
    with closing(sqlite3.connect(tmp_path / "s" / "store.sqlite")) as old:
        old.executescript(OF_FORMAT_2)
    with pytest.raises(BadInput, match="older siesta: open it once"):
        check_store(tmp_path / "s")
    store = Store.open(tmp_path / "s")
    store.keep_thumbnails({1: b"ant"})
    assert everything(store) == before and store.thumbnails.get(1) == b"ant"
    store.close()
    assert check_store(tmp_path / "s") == []


def test_a_store_of_format_1_is_brought_to_todays(tmp_path: Path) -> None:
    store = make_store(tmp_path / "s", capacity=9)
    store.add([sample("ant", 1), sample("bee", 2)])
    swap(store, weights(1), np.array([1]), {"n": 1})
    store.add([sample("ant", 3), sample("cat", 4), sample("cat", 5)])
    before = everything(store)
    store.close()
    old = sqlite3.connect(tmp_path / "s" / "store.sqlite")
    old.executescript(
        f"""
        {OF_FORMAT_2}
        ALTER TABLE classes DROP COLUMN held;
        ALTER TABLE samples DROP COLUMN held;
        ALTER TABLE generations DROP COLUMN since;
        DROP TABLE in_use;
        DROP TABLE audit;
        DROP TABLE drift;
        PRAGMA user_version = 1;
        """
    )
    old.close()
    assert everything(Store.open(tmp_path / "s", "read")) == before
    store = Store.open(tmp_path / "s")
    assert everything(store) == before
    (only,) = store.generations.all()
    assert (only.number, only.since, only.in_use) == (1, 2, True)
    assert store.generations.newest() == 1
    store.close()


def test_a_memory_too_small_for_one_sample_is_refused(tmp_path: Path) -> None:
    for size in (0, -5, ONE - 1):
        with pytest.raises(BadInput, match=f"at least {ONE}"):
            Store.create(
                tmp_path / "s",
                settings={"code_bytes": CODE_BYTES, "memory_bytes": size, "seed": 0},
                constant={},
                generation={},
            )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [b"with space", b"what?mode=ro", b"100%25", b"a#b", "ünï-深い".encode(), b"%", b"'quoted\"", b"latin-\xe9"],
    ids=ascii,
)
def test_any_folder_name_will_do(tmp_path: Path, name: bytes) -> None:
    path = tmp_path / os.fsdecode(name)
    store = make_store(path)
    store.add([sample("ant", 1)])
    store.close()
    for access in ("read", "teach"):
        store = Store.open(path, access)
        assert len(store) == 1
        assert store.path == path
        store.close()
    assert [os.fsencode(entry.name) for entry in tmp_path.iterdir()] == [name]


def test_a_relative_path_means_the_folder_of_the_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_store(Path("s")).close()
    assert (tmp_path / "s" / "store.sqlite").is_file()


def test_what_exists_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "folder", "link"):
        with pytest.raises(BadInput, match="exists already"):
            make_store(tmp_path / name)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder", "link"]
    assert (tmp_path / "file").read_text() == "mine"


def test_leftovers_of_a_killed_create_do_not_matter(tmp_path: Path) -> None:
    for name in (".s.partial", "..s.partial.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "store.sqlite").write_bytes(b"half")
    make_store(tmp_path / "s").close()
    Store.open(tmp_path / "s").close()


# -- damage ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store with six samples taught, five stored."""
    store = make_store(tmp_path / "s")
    store.add([sample(label, number) for number, label in enumerate(["ant", "bee", "ant", "cat", "bee", "ant"])])
    swap(store, weights(1), np.array([6]), {})
    store.add([sample("bee", 7)])
    store.close()
    return tmp_path / "s"


def change(path: Path, *commands: str) -> None:
    connection = sqlite3.connect(path / "store.sqlite", isolation_level=None)
    for command in commands:
        connection.execute(command)
    connection.close()


def one_sentence(error: BaseException) -> bool:
    words = str(error)
    return bool(words) and "\n" not in words and "Traceback" not in words


def test_a_flipped_byte_of_a_sample_is_noticed_and_the_sample_named(path: Path) -> None:
    change(path, "UPDATE codes SET codes = x'00112233' WHERE id = (SELECT max(id) FROM codes)")
    with_damage = Store.open(path)
    ids = np.sort(with_damage.memory().ids)
    assert with_damage.get(ids[:-1])[0].all()
    with pytest.raises(Damaged, match=f"sample {ids[-1]} ") as caught:
        with_damage.get(ids)
    assert one_sentence(caught.value)
    with_damage.close()


def test_codes_under_a_wrong_id_are_noticed(path: Path) -> None:
    change(path, "UPDATE codes SET id = 1000 WHERE id = (SELECT max(id) FROM codes)")
    store = Store.open(path)
    with pytest.raises(Damaged, match="sample 1000 "):
        store.get(np.array([1000]))
    store.close()


@pytest.mark.parametrize("name", ["bottom.safetensors", "generations/000001/top.safetensors"])
@pytest.mark.parametrize("damage", ["truncated", "garbage", "missing"])
def test_a_damaged_tensor_file_is_named(path: Path, name: str, damage: str) -> None:
    file = path / name
    data = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(data[: len(data) // 2] if damage == "truncated" else bytes(len(data)))
    store = Store.open(path, "read")
    with pytest.raises(Damaged, match=name) as caught:
        store.constant("bottom")
        store.snapshot().weights["top"]
    assert one_sentence(caught.value)
    store.close()


def test_missing_generations_are_damage(path: Path) -> None:
    shutil.rmtree(path / "generations")
    with pytest.raises(Damaged, match="generations"):
        Store.open(path).snapshot().weights["top"]


@pytest.mark.parametrize("access", ["read", "teach"])
@pytest.mark.parametrize("data", [b"", b"garbage", bytes(100_000), b"SQLite format 3\0" + bytes(200)])
def test_a_garbage_database_is_refused_in_words(path: Path, data: bytes, access: Access) -> None:
    for leftover in ("store.sqlite-wal", "store.sqlite-shm"):
        (path / leftover).unlink(missing_ok=True)
    (path / "store.sqlite").write_bytes(data)
    with pytest.raises((Damaged, BadInput)) as caught:
        Store.open(path, access)
    assert one_sentence(caught.value)
    assert str(path) in str(caught.value)


def test_a_database_that_is_cut_short_is_damaged(path: Path) -> None:
    data = (path / "store.sqlite").read_bytes()
    (path / "store.sqlite").write_bytes(data[: len(data) // 2])
    with pytest.raises(Damaged) as caught:
        everything(Store.open(path, "read"))
    assert one_sentence(caught.value)


@pytest.mark.parametrize("statement", ["UPDATE settings SET value = '{'", "DELETE FROM settings", "DROP TABLE samples"])
def test_a_database_without_its_contents_is_damaged(path: Path, statement: str) -> None:
    change(path, statement)
    with pytest.raises(Damaged) as caught:
        everything(Store.open(path))
    assert one_sentence(caught.value)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255), length=st.sampled_from([1, 16, 512]))
def test_no_flipped_bytes_crash_it(path: Path, where: float, value: int, length: int) -> None:
    """Damage may be invisible or refused in words; it never escapes as anything else."""
    file = path / "store.sqlite"
    whole = file.read_bytes()
    data = bytearray(whole)
    start = int(where * len(data))
    data[start : start + length] = bytes([value]) * len(data[start : start + length])
    file.write_bytes(data)
    try:
        store = Store.open(path, "read")
        try:
            everything(store)
            store.snapshot().weights["top"]
            store.generations.reports()
        finally:
            store.close()
    except SiestaError as error:
        assert one_sentence(error)
    except AssertionError:
        pass  # `everything` found samples without codes
    finally:
        for leftover in ("store.sqlite-wal", "store.sqlite-shm"):
            (path / leftover).unlink(missing_ok=True)
        file.write_bytes(whole)


@pytest.mark.parametrize("access", ["read", "teach"])
def test_a_newer_format_is_refused(path: Path, access: Access) -> None:
    change(path, "PRAGMA user_version = 99")
    with pytest.raises(Damaged, match=r"99.*upgrade") as caught:
        Store.open(path, access)
    assert caught.value.exit_code == 4


def test_a_foreign_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    change(folder, "CREATE TABLE mine (x)")
    before = (folder / "store.sqlite").read_bytes()
    with pytest.raises(BadInput, match="not a siesta learner"):
        Store.open(folder)
    assert (folder / "store.sqlite").read_bytes() == before


@pytest.mark.parametrize("access", ["read", "teach"])
def test_what_is_not_there_or_not_a_learner_is_said_so(tmp_path: Path, access: Access) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    for name, words in (("nothing", "no learner"), ("file", "not a siesta learner"), ("empty", "not a siesta learner")):
        with pytest.raises(BadInput, match=words):
            Store.open(tmp_path / name, access)
    assert list((tmp_path / "empty").iterdir()) == []


def test_an_impossible_name_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 300)
    with pytest.raises(BadInput):
        Store.open(path)
    with pytest.raises(BadInput):
        make_store(path)


def test_a_name_too_long_for_the_partial_folder_is_refused_in_words_or_works(tmp_path: Path) -> None:
    try:
        make_store(tmp_path / ("x" * 250)).close()
    except BadInput as error:
        assert one_sentence(error)


def test_a_closed_store_is_not_called_damaged(path: Path) -> None:
    store = Store.open(path)
    store.close()
    store.close()
    with pytest.raises(Exception) as caught:  # any kind will do, but for damage
        store.classes()
    assert not isinstance(caught.value, Damaged)


def test_use_from_another_thread_is_not_called_damage(path: Path) -> None:
    store = Store.open(path)
    caught: list[BaseException] = []

    def use() -> None:
        try:
            store.classes()
        except Exception as error:
            caught.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    store.close()
    assert not any(isinstance(error, Damaged) for error in caught)


# -- other processes ---------------------------------------------------------------------------------------------------


def hold(path: Path, pipe: Connection) -> None:
    """A child that keeps a store open for writing, and adds a sample for each word it gets until there is none."""
    store = Store.open(path)
    pipe.send(os.getpid())
    while (label := pipe.recv()) is not None:
        pipe.send(store.add([sample(label, 1)])[0].id)
    store.close()


def test_a_second_writer_is_refused_with_the_pid_while_readers_go_on(path: Path) -> None:
    ours, theirs = FORKSERVER.Pipe()
    child = FORKSERVER.Process(target=hold, args=(path, theirs))
    child.start()
    pid = ours.recv()
    assert pid == child.pid
    with pytest.raises(Busy, match=f"process {pid}") as caught:
        Store.open(path)
    assert caught.value.exit_code == 5
    reader = Store.open(path, "read")
    before = {record.label: record.taught for record in reader.classes()}
    ours.send("dog")
    new = ours.recv()
    assert {record.label: record.taught for record in reader.classes()} == {**before, "dog": 1}
    assert reader.get(np.array([new]))[0].all()
    assert len(reader) == reader.capacity == 5
    ours.send(None)
    child.join()
    assert child.exitcode == 0
    reader.close()
    Store.open(path).close()


def test_a_reader_that_was_open_counts_what_came_after(tmp_path: Path) -> None:
    writer = make_store(tmp_path / "s")
    reader = Store.open(tmp_path / "s", "read")
    writer.add([sample("ant", 1)])
    assert len(reader) == 1
    assert reader.bytes_used == ONE
    writer.close()
    reader.close()


def test_a_reader_cannot_change_anything(path: Path) -> None:
    def listing() -> list[Path]:
        return sorted(file for file in path.rglob("*") if not file.name.endswith(("-wal", "-shm")))

    files = listing()
    reader = Store.open(path, "read")
    before = everything(reader)
    with pytest.raises(BadInput):
        reader.add([sample("ant", 9)])
    with pytest.raises(BadInput):
        swap(reader, weights(5), np.array([1]), {})
    assert everything(reader) == before
    assert listing() == files
    reader.close()


# -- disks that are full or read-only, in a mount namespace of a child ------------------------------------------------


Target = Callable[[Path], None]


def _in_own_mounts(target: Target, path: Path, pipe: Connection) -> None:
    try:
        if ctypes.CDLL(None, use_errno=True).unshare(0x00020000):  # CLONE_NEWNS
            pipe.send("skip")
            return
        mount("--make-rprivate", "/")
        target(path)
        pipe.send("")
    except subprocess.CalledProcessError:
        pipe.send("skip")
    except BaseException:
        pipe.send(traceback.format_exc())


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def run_in_own_mounts(target: Target, path: Path) -> None:
    ours, theirs = FORKSERVER.Pipe()
    child = FORKSERVER.Process(target=_in_own_mounts, args=(target, path, theirs))
    child.start()
    words = ours.recv()
    child.join()
    if words == "skip":
        pytest.skip("this machine lets us mount nothing")
    assert not words, words


def small_disk(path: Path, size: str = "2m") -> None:
    mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", path)


def fill(folder: Path) -> Path:
    """Takes all room that is left."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return ballast
    raise AssertionError("the disk never filled up")


def refused(action: Callable[[], object]) -> None:
    with pytest.raises(BadInput) as caught:
        action()
    assert "full" in str(caught.value), str(caught.value)
    assert one_sentence(caught.value)


def _teach_until_full(path: Path) -> None:
    small_disk(path, "6m")
    ballast = path / "ballast"
    ballast.write_bytes(bytes(1_000_000))
    store = make_store(path / "s", capacity=1000, code_bytes=12_000)
    taught: list[int] = []

    def teach() -> None:
        taught.extend(store.add([sample(LABELS[n % 3], n, 12_000)])[0].id for n in range(1000))

    refused(teach)
    before = everything(store)
    assert before[0] == taught == list(range(1, len(taught) + 1))
    assert len(taught) > 20
    refused(lambda: store.add([sample("dog", 1, 12_000), sample("dog", 2, 12_000)]))
    assert everything(store) == before
    ballast.unlink()
    (stored,) = store.add([sample("dog", 3, 12_000)])
    assert stored.id == taught[-1] + 1
    after = everything(store)
    store.close()
    store = Store.open(path / "s")
    assert everything(store) == after
    assert store._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    store.close()


def _swap_when_full(path: Path) -> None:
    small_disk(path)
    store = make_store(path / "s", capacity=10)
    store.add([sample("ant", number) for number in range(10)])
    before = everything(store)
    ballast = fill(path)
    big = {"top": {"t": torch.zeros(100_000)}, "head": {"h": torch.tensor([1])}}
    refused(lambda: swap(store, big, np.array([1]), {}))
    assert everything(store) == before
    assert store.generation() == 0
    assert torch.equal(store.snapshot().weights["top"]["t"], weights(0)["top"]["t"])
    assert [folder.name for folder in (path / "s" / "generations").iterdir()] == ["000000"], "room was not given back"
    ballast.unlink()
    swap(store, big, np.array([1]), {})
    assert store.generation() == 1
    store.close()


def _create_when_full(path: Path) -> None:
    small_disk(path)
    ballast = fill(path)
    refused(lambda: make_store(path / "s"))
    assert [entry.name for entry in path.iterdir()] == ["ballast"]
    ballast.write_bytes(bytes(1_900_000))
    refused(lambda: make_store(path / "s"))
    assert [entry.name for entry in path.iterdir()] == ["ballast"]
    ballast.unlink()
    make_store(path / "s").close()


def _open_when_full(path: Path) -> None:
    small_disk(path)
    make_store(path / "s").close()
    ballast = fill(path)
    reader = Store.open(path / "s", "read")
    assert everything(reader)[-1] == 0
    reader.close()
    with pytest.raises(BadInput) as caught:
        Store.open(path / "s").add([sample("ant", 1)])
    assert one_sentence(caught.value)
    ballast.unlink()
    store = Store.open(path / "s")  # the refused one left no lock behind
    store.add([sample("ant", 1)])
    store.close()


def _read_only(path: Path) -> None:
    mount("--bind", path, path)
    mount("-o", "remount,ro,bind", path)
    with pytest.raises(BadInput, match="cannot be written"):
        Store.open(path / "s")
    with pytest.raises(BadInput, match="cannot be written"):
        make_store(path / "new")
    reader = Store.open(path / "s", "read")
    assert [record.taught for record in reader.classes()] == [3, 3, 1]
    assert everything(reader)[-1] == 5
    with pytest.raises(BadInput, match="cannot be written"):
        reader.add([sample("ant", 1)])
    with pytest.raises(BadInput, match="cannot be written"):
        swap(reader, weights(7), np.array([1]), {})
    reader.close()


def _killed_then_read_only(path: Path) -> None:
    """A store whose last commits are still in the WAL, as kill -9 leaves it."""
    ours, theirs = multiprocessing.Pipe()
    child = os.fork()
    if not child:
        store = Store.open(path / "s")
        theirs.send(store.add([sample("dog", 1), sample("dog", 2)])[1].id)
        os.kill(os.getpid(), 9)
    newest = ours.recv()
    os.waitpid(child, 0)
    (path / "s" / "store.sqlite-shm").unlink()  # a copy or a restore may leave it out
    mount("--bind", path, path)
    mount("-o", "remount,ro,bind", path)
    try:
        reader = Store.open(path / "s", "read")
    except SiestaError as error:  # honest as well
        assert one_sentence(error)
        return
    assert reader.get(np.array([newest]))[0].all(), "acknowledged samples are silently missing"
    reader.close()


FULL_DISK: Sequence[Target] = (_teach_until_full, _swap_when_full, _create_when_full, _open_when_full)


@pytest.mark.parametrize("target", FULL_DISK, ids=lambda target: target.__name__.strip("_"))
def test_a_full_disk_refuses_in_words_and_damages_nothing(tmp_path: Path, target: Target) -> None:
    run_in_own_mounts(target, tmp_path)


@pytest.mark.parametrize("target", [_read_only, _killed_then_read_only], ids=lambda target: target.__name__.strip("_"))
def test_a_read_only_disk_can_be_read(path: Path, target: Target) -> None:
    run_in_own_mounts(target, path.parent)
