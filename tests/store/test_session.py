"""Who may read and write, and from where."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from siesta.errors import BadInput, Busy, Damaged
from siesta.store import Store
from siesta.store.check import check_store
from siesta.store.session import Access
from tests.store.stores import (
    FORKSERVER,
    LABELS,
    SAMPLE_BYTES,
    everything,
    make_store,
    sample,
    swap,
    weights,
)


def test_a_closed_store_is_not_called_damaged(path: Path) -> None:
    store = Store.open(path)
    store.close()
    store.close()
    with pytest.raises(Exception) as caught:  # any kind will do, but for damage
        store.classes.all()
    assert not isinstance(caught.value, Damaged)


def test_use_from_another_thread_is_not_called_damage(path: Path) -> None:
    store = Store.open(path)
    caught: list[BaseException] = []

    def use() -> None:
        try:
            store.classes.all()
        except Exception as error:
            caught.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    store.close()
    assert not any(isinstance(error, Damaged) for error in caught)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Ctrl-C inside a callback of gc
def test_ctrl_c_at_any_moment_leaves_a_store_that_goes_on(tmp_path: Path) -> None:
    armed = False

    def interrupt(*_: object) -> None:
        if armed:
            raise KeyboardInterrupt

    store = make_store(tmp_path / "s", capacity=1_000_000)
    previous = signal.signal(signal.SIGALRM, interrupt)
    interrupts = 0
    try:
        for delay in np.random.default_rng(0).uniform(5e-5, 1e-3, 500):
            signal.setitimer(signal.ITIMER_REAL, delay, 0.02)  # again and again: Python drops one in a finalizer
            try:
                armed = True
                while True:
                    store.add([sample(label, 1) for label in LABELS])
            except KeyboardInterrupt:
                armed = False
                interrupts += 1
            store.add([sample("after", 2)])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert interrupts == 500
    counted = store.budget.samples()
    left = everything(store)
    store.close()
    assert check_store(tmp_path / "s") == []
    with closing(Store.open(tmp_path / "s")) as again:
        assert everything(again) == left
        assert again.budget.samples() == counted
        stored = {record.label: record.stored for record in again.classes.all()}
    assert stored["after"] == 500
    assert len({stored[label] for label in LABELS}) == 1  # whole transactions only


def teach_on_request(path: Path, pipe: Connection) -> None:
    """A child that keeps a store open for writing, and adds a sample for each word it gets until there is none."""
    store = Store.open(path)
    pipe.send(os.getpid())
    while (label := pipe.recv()) is not None:
        pipe.send(store.add([sample(label, 1)])[0].id)
    store.close()


def test_a_second_teacher_is_refused_with_the_pid_while_readers_go_on(path: Path) -> None:
    ours, theirs = FORKSERVER.Pipe()
    child = FORKSERVER.Process(target=teach_on_request, args=(path, theirs))
    child.start()
    pid = ours.recv()
    assert pid == child.pid
    with pytest.raises(Busy, match=f"process {pid}") as caught:
        Store.open(path)
    assert caught.value.exit_code == 5
    reader = Store.open(path, "read")
    before = {record.label: record.taught for record in reader.classes.all()}
    ours.send("dog")
    new = ours.recv()
    assert {record.label: record.taught for record in reader.classes.all()} == {**before, "dog": 1}
    assert reader.samples.get(np.array([new]))[0].all()
    assert len(reader) == reader.budget.capacity == 5
    ours.send(None)
    child.join()
    assert child.exitcode == 0
    reader.close()
    Store.open(path).close()


def test_an_open_reader_counts_later_samples(tmp_path: Path) -> None:
    writer = make_store(tmp_path / "s")
    reader = Store.open(tmp_path / "s", "read")
    writer.add([sample("ant", 1)])
    assert len(reader) == 1
    assert reader.budget.bytes_used() == SAMPLE_BYTES
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


@pytest.mark.parametrize(
    "name", ["lock", "sleep.lock", "store.sqlite-wal", "to_be_wiped", "generations/000000/.head.next"]
)
@pytest.mark.parametrize("access", ["read", "teach", "sleep"])
def test_links_in_a_learner_of_somebody_else_are_not_followed(tmp_path: Path, name: str, access: Access) -> None:
    path = tmp_path / "s"
    make_store(path).close()
    mine = tmp_path / "mine"
    mine.write_text("important")
    (path / name).unlink(missing_ok=True)
    (path / name).symlink_to(mine)
    with pytest.raises(BadInput, match=f"{name} is a symbolic link, which is not followed: replace it"):
        Store.open(path, access)
    assert mine.read_text() == "important"
    (tmp_path / "link").symlink_to(path)  # the learner's folder itself may be one
    (path / name).unlink()
    Store.open(tmp_path / "link", access).close()
