"""A process that teaches and sleeps is killed at any moment; this cuts across the learner and its store."""

from __future__ import annotations

import multiprocessing
import shutil
import time
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from siesta.learner import Siesta
from siesta.store import tensor_files
from tests.stores import store_of

FORKSERVER = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload(["siesta.learner"])  # imported once for all children

MEMORY = 12 * 64 + 5  # 12 samples of 32 + 32 bytes
STEPS = 42  # with seven sleeps, so that generations are removed


def image(number: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.random.default_rng(number).integers(0, 256, (32, 32, 3), dtype=np.uint8)


def label(number: int) -> str:
    return f"class {number * number % 7}"


def teach(learner: Siesta, number: int) -> int:
    return learner.learn_one(image(number), label(number))


def sleep_once(learner: Siesta) -> int:
    return learner.sleep(updates=4, batch_size=4).generation


def take_step(learner: Siesta, number: int) -> None:
    """Teach a sample, or sleep after every five of them."""
    if number % 6 == 5:
        sleep_once(learner)
    else:
        teach(learner, number)


@dataclass(frozen=True)
class State:
    """Everything that a learner keeps, to be compared bit for bit."""

    samples: tuple[tuple[int, int, int, bytes], ...]
    classes: tuple[object, ...]
    sums: tuple[tuple[int, int, bytes], ...]
    generation: int
    weights: bytes
    means: bytes

    @classmethod
    def of(cls, learner: Siesta) -> State:
        store = store_of(learner)
        memory = store.samples.memory()
        order = np.argsort(memory.ids)
        present, codes = store.samples.get(memory.ids[order])
        assert present.all()
        columns = (memory.ids[order], memory.classes[order], memory.rehearsed[order])
        rows = zip(*(column.tolist() for column in columns), codes, strict=True)
        classes = tuple(store.classes.all())
        recent = store.classes.recent(record.id for record in classes)
        tensors = {**store.snapshot().weights["top"], **store.snapshot().weights["head"]}
        return cls(
            samples=tuple((sample, owner, times, code.tobytes()) for sample, owner, times, code in rows),
            classes=classes,
            sums=tuple((entry.class_id, entry.count, entry.total.tobytes()) for entry in recent),
            generation=store.generations.active(),
            weights=b"".join(tensors[name].tobytes() for name in sorted(tensors)),
            means=learner.head.weights().tobytes(),
        )


@cache
def states() -> list[State]:
    """Return the states of a learner that is never killed, after each step."""
    with Siesta.create(":memory:", memory=MEMORY, image_size=32) as learner:
        found = [State.of(learner)]
        for number in range(STEPS):
            take_step(learner, number)
            found.append(State.of(learner))
        return found


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kill") / "empty.siesta"
    Siesta.create(path, memory=MEMORY, image_size=32).close()
    return path


@pytest.fixture(scope="module")
def taught(empty: Path) -> Path:
    path = empty.with_name("taught.siesta")
    shutil.copytree(empty, path)
    with Siesta.open(path) as learner:
        for number in range(20):
            teach(learner, number)
    return path


def teach_and_sleep(path: Path, pipe: Connection) -> None:
    """Take all steps and acknowledge each of them; run by the child process."""
    torch.set_num_threads(1)
    with Siesta.open(path) as learner:
        pipe.send(0)
        for number in range(STEPS):
            take_step(learner, number)
            pipe.send(number + 1)
    pipe.recv()


def kill_child(path: Path, after: int, seconds: float) -> int:
    """Kill a child `seconds` after its acknowledgement number `after`; return the number of its last one."""
    ours, theirs = FORKSERVER.Pipe()
    child = FORKSERVER.Process(target=teach_and_sleep, args=(path, theirs))
    child.start()
    theirs.close()
    last: int = ours.recv()
    while last < after:
        last = ours.recv()
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and ours.poll(left):
        last = ours.recv()
    child.kill()
    child.join()
    assert child.exitcode == -9
    try:
        while True:  # sent before the kill, read after it
            last = ours.recv()
    except EOFError:
        return last


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 200))])
def test_a_kill_loses_nothing_that_was_acknowledged(empty: Path, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    path = tmp_path / "killed.siesta"
    shutil.copytree(empty, path)
    last = kill_child(path, int(rng.integers(0, STEPS - 2)), rng.uniform(0, 0.1))
    with Siesta.open(path) as learner:
        found = State.of(learner)
        taken = last + (found != states()[last])  # a step may be taken and not acknowledged
        assert found == states()[taken]
        kept = {f"{number:06d}" for number in range(max(found.generation - 4, 0), found.generation + 1)}
        assert {folder.name for folder in (path / "generations").iterdir()} == kept
        further = min(taken + 3, STEPS)  # a fast machine may have taken all of them
        for number in range(taken, further):
            take_step(learner, number)
        assert State.of(learner) == states()[further]


def test_a_reader_that_opens_while_a_sleep_ends_sees_one_whole_generation(
    taught: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "read.siesta"
    shutil.copytree(taught, path)
    read_tensors = tensor_files.read_tensors
    writer = Siesta.open(path)
    before = writer.predict_one(image(3))
    pending = [writer]

    def read_and_swap(file: Path, sha256: str) -> dict[str, npt.NDArray[Any]]:
        tensors = read_tensors(file, sha256)
        if "generations" in file.parts and pending:  # the sleep of the writer ends after the reader's first file
            pending.pop().sleep(updates=8, batch_size=4, lr=0.5)
        return tensors

    monkeypatch.setattr(tensor_files, "read_tensors", read_and_swap)
    with Siesta.open(path, read_only=True) as reader:
        assert not pending
        after = writer.predict_one(image(3))
        assert before != after
        assert reader.predict_one(image(3)) in (before, after)
    writer.close()
