"""kill -9 at any moment: what was acknowledged is there, nothing is half-done, and it goes on as if never killed."""

from __future__ import annotations

import multiprocessing
import shutil
import time
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
import torch

from siesta.learner import Siesta
from siesta.store import files

FORKSERVER = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload(["siesta.learner"])  # torch is imported once for all children

MEMORY = 12 * 64 + 5  # 12 samples of 32 + 32 bytes
DEEDS = 60


def picture(number: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.random.default_rng(number).integers(0, 256, (32, 32, 3), dtype=np.uint8)


def label(number: int) -> str:
    return f"class {number * number % 7}"


def teach_on(learner: Siesta, number: int) -> int:
    return learner.learn_one(picture(number), label(number))


def sleep_once(learner: Siesta) -> int:
    return learner.sleep(updates=4, batch_size=4).generation


def do(learner: Siesta, number: int) -> None:
    """Five samples, then a sleep."""
    if number % 6 == 5:
        sleep_once(learner)
    else:
        teach_on(learner, number)


@dataclass(frozen=True)
class State:
    """All that lasts of a learner, comparable bit for bit."""

    samples: tuple[tuple[int, int, int, bytes], ...]
    classes: tuple[object, ...]
    sums: tuple[tuple[int, int, bytes], ...]
    generation: int
    weights: bytes
    means: bytes

    @classmethod
    def of(cls, learner: Siesta) -> State:
        store = learner._store
        memory = store.memory()
        order = np.argsort(memory.ids)
        present, codes = store.get(memory.ids[order])
        assert present.all()
        columns = (memory.ids[order], memory.classes[order], memory.rehearsed[order])
        rows = zip(*(column.tolist() for column in columns), codes, strict=True)
        classes = tuple(store.classes())
        recent = store.recent(record.id for record in classes)
        tensors = {**store.snapshot().weights["top"], **store.snapshot().weights["head"]}
        return cls(
            samples=tuple((sample, owner, times, code.tobytes()) for sample, owner, times, code in rows),
            classes=classes,
            sums=tuple((entry.class_id, entry.count, entry.total.tobytes()) for entry in recent),
            generation=store.generation(),
            weights=b"".join(tensors[name].contiguous().numpy().tobytes() for name in sorted(tensors)),
            means=learner._head.weights().numpy().tobytes(),
        )


@cache
def states() -> list[State]:
    """States of a learner that nobody kills, after each deed."""
    with Siesta.create(":memory:", memory=MEMORY, image_size=32) as learner:
        found = [State.of(learner)]
        for number in range(DEEDS):
            do(learner, number)
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
            teach_on(learner, number)
    return path


def live(path: Path, pipe: Connection) -> None:
    """Teaches and sleeps, and acknowledges each deed."""
    torch.set_num_threads(1)
    with Siesta.open(path) as learner:
        pipe.send(0)
        for number in range(DEEDS):
            do(learner, number)
            pipe.send(number + 1)
    pipe.recv()


def killed(path: Path, after: int, more: float) -> int:
    """Lets a child live, kills it `more` seconds after its acknowledgement number `after`; returns its last one."""
    ours, theirs = FORKSERVER.Pipe()
    child = FORKSERVER.Process(target=live, args=(path, theirs))
    child.start()
    theirs.close()
    last: int = ours.recv()
    while last < after:
        last = ours.recv()
    end = time.monotonic() + more
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


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 200))])
def test_a_kill_loses_nothing_that_was_acknowledged(empty: Path, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    path = tmp_path / "killed.siesta"
    shutil.copytree(empty, path)
    last = killed(path, int(rng.integers(0, DEEDS - 2)), rng.uniform(0, 0.1))
    with Siesta.open(path) as learner:
        found = State.of(learner)
        done = last + (found != states()[last])  # a deed may be done and not acknowledged
        assert found == states()[done]
        kept = {f"{number:06d}" for number in range(max(found.generation - 4, 0), found.generation + 1)}
        assert {folder.name for folder in (path / "generations").iterdir()} == kept
        further = min(done + 3, DEEDS)  # a quick machine may be at the end already
        for number in range(done, further):  # and it goes on
            do(learner, number)
        assert State.of(learner) == states()[further]


def test_a_reader_that_opens_while_a_sleep_ends_sees_one_whole_generation(
    taught: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "read.siesta"
    shutil.copytree(taught, path)
    read_tensors, writer = files.read_tensors, Siesta.open(path)
    before, pending = writer.predict_one(picture(3)), [writer]

    def read_and_swap(file: Path, sha256: str) -> dict[str, torch.Tensor]:
        tensors = read_tensors(file, sha256)
        if "generations" in file.parts and pending:  # the reader has its first file: now the writer's sleep ends
            pending.pop().sleep(updates=8, batch_size=4, rate=0.5)
        return tensors

    monkeypatch.setattr(files, "read_tensors", read_and_swap)
    with Siesta.open(path, read_only=True) as reader:
        assert not pending
        after = writer.predict_one(picture(3))
        assert before != after
        assert reader.predict_one(picture(3)) in (before, after)
    writer.close()
