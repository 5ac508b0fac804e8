"""Creating, opening and adding, on disk and in memory."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from siesta.errors import BadInput, Damaged
from siesta.store import NewSample, Store
from siesta.store.session import Access
from siesta.store.store import StoredSample
from tests.store.stores import (
    CODE_BYTES,
    LABELS,
    SAMPLE_BYTES,
    WIDTH,
    everything,
    make_store,
    sample,
    swap,
    weights,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    labels=st.lists(st.sampled_from(LABELS), max_size=30), cuts=st.sets(st.integers(0, 30)), capacity=st.integers(1, 8)
)
def test_adding_many_equals_adding_one_by_one(labels: list[str], cuts: set[int], capacity: int) -> None:
    one_by_one, together = make_store(capacity=capacity, seed=3), make_store(capacity=capacity, seed=3)
    samples = [sample(label, number) for number, label in enumerate(labels)]
    singly = [one_by_one.add([new])[0] for new in samples]
    edges = [0, *sorted(cut for cut in cuts if cut < len(samples)), len(samples)]
    grouped: list[StoredSample] = []
    for start, end in pairwise(edges):
        grouped += together.add(samples[start:end])
    assert singly == grouped
    assert everything(one_by_one) == everything(together)
    one_by_one.close()
    together.close()


@settings(max_examples=10, deadline=None)
@given(labels=st.lists(st.sampled_from(LABELS), max_size=20), seed=st.integers(0, 5))
def test_disk_and_memory_are_the_same_and_reopening_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, labels: list[str], seed: int
) -> None:
    path = tmp_path_factory.mktemp("store") / "s"
    on_disk, in_memory = make_store(path, seed=seed), make_store(seed=seed)
    for number, label in enumerate(labels):
        for each in (on_disk, in_memory):
            each.add([sample(label, number)])
        if number % 7 == 3:
            for each in (on_disk, in_memory):
                swap(each, weights(number), np.array([1, number, number]), {})
    before = everything(on_disk)
    assert before == everything(in_memory)
    on_disk.close()
    with_settings = {"code_bytes": CODE_BYTES, "seed": seed}
    for access in ("teach", "read"):
        again = Store.open(path, access)
        assert everything(again) == before
        assert again.settings.items() >= with_settings.items()
        assert again.generations.active() == in_memory.generations.active()
        assert np.array_equal(again.snapshot().weights["top"]["t"], in_memory.snapshot().weights["top"]["t"])
        assert np.array_equal(again.constants.read("bottom")["w"], np.arange(4.0))
        again.close()
    in_memory.close()
    shutil.rmtree(path)


@pytest.mark.parametrize("broken", [sample("a\nb", 9), sample("", 9), NewSample("ant", b"123", np.zeros(WIDTH, "f4"))])
def test_a_failing_add_leaves_nothing_behind(store: Store, broken: NewSample) -> None:
    store.add([sample("ant", number, key=number) for number in range(5)])
    before = everything(store)
    with pytest.raises((BadInput, ValueError)):
        store.add([sample("bee", 6, key=6), sample("ant", 7, key=7), broken, sample("cat", 8, key=8)])
    assert everything(store) == before
    assert set(store.samples.known_keys(range(9))) == set(range(5))
    assert store.add([sample("bee", 6)]) == [StoredSample(6, 2)]


def test_a_memory_too_small_for_one_sample_is_refused(tmp_path: Path) -> None:
    for size in (0, -5, SAMPLE_BYTES - 1):
        with pytest.raises(BadInput, match=f"at least {SAMPLE_BYTES}"):
            Store.create(
                tmp_path / "s",
                settings={"code_bytes": CODE_BYTES, "memory_bytes": size, "seed": 0},
                constants={},
                generation={},
            )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("access", ["read", "teach"])
def test_a_path_without_a_learner_is_refused(tmp_path: Path, access: Access) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("nothing", "no learner"),
        ("file", "not a siesta learner"),
        ("empty", "not a siesta learner"),
    ):
        with pytest.raises(BadInput, match=message):
            Store.open(tmp_path / name, access)
    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.parametrize("access", ["read", "teach"])
def test_a_learner_whose_database_is_missing_or_empty_is_damaged(tmp_path: Path, access: Access) -> None:
    make_store(tmp_path / "s").close()
    database = tmp_path / "s" / "store.sqlite"
    database.write_bytes(b"")
    with pytest.raises(Damaged, match="is empty, and with it all samples: restore it"):
        Store.open(tmp_path / "s", access)
    assert database.read_bytes() == b""
    database.unlink()
    with pytest.raises(Damaged, match="is missing, and with it all samples: restore it"):
        Store.open(tmp_path / "s", access)
    assert not database.exists()


def test_what_a_repair_could_not_remove_is_removed_by_the_next_that_learns(tmp_path: Path) -> None:
    make_store(tmp_path / "s").close()
    (tmp_path / "s" / "store.sqlite.copy").write_bytes(b"samples")
    Store.open(tmp_path / "s", "read").close()
    assert (tmp_path / "s" / "store.sqlite.copy").exists()
    Store.open(tmp_path / "s").close()
    assert not (tmp_path / "s" / "store.sqlite.copy").exists()
