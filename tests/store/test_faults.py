"""Disks that fail while we write: what was acknowledged stays, the rest is refused in words, and then it goes on.

The functions without `test_` in front run in a child, with faults.c preloaded or on a disk of their own.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from siesta.errors import SiestaError
from siesta.store import OVERHEAD_BYTES, NewSample, Store
from siesta.store.check import check_store

WRITES, SYNCS, TORN = 1, 2, 4
KINDS = {"write": WRITES, "sync": SYNCS, "torn": TORN}
CODE_BYTES = 600
MOST_CALLS = 30  # more than any one step makes


def codes_of(number: int) -> bytes:
    return np.random.default_rng(number).bytes(CODE_BYTES)


def teach(store: Store) -> int:
    """Teaches the next sample; its codes tell its id."""
    number = store.snapshot().newest + 1
    sample = NewSample(f"class {number % 3}", codes_of(number), np.full(4, number, dtype=np.float32))
    assert [stored.id for stored in store.add([sample])] == [number]
    return number


def weights(number: int) -> dict[str, dict[str, torch.Tensor]]:
    return {"top": {"t": torch.full((50, 50), float(number))}, "head": {"h": torch.tensor([number])}}


class NoSums:
    """Nothing is taught meanwhile."""

    def take(self, *_: object) -> None:
        raise AssertionError

    def totals(self, *_: object) -> list[tuple[int, int, npt.NDArray[np.float64]]]:
        return []


def sleep(store: Store) -> int:
    with store.sleeping():
        number = store.add_generation(weights(store.generations.newest() + 1), store.snapshot().newest, {})
        store.use_generation(number, NoSums())
    return number


def make(path: Path, capacity: int = 1000) -> Store:
    memory = capacity * (CODE_BYTES + OVERHEAD_BYTES)
    return Store.create(
        path,
        settings={"code_bytes": CODE_BYTES, "memory_bytes": memory, "seed": 0},
        constant={"bottom": {"w": torch.arange(4.0)}},
        generation=weights(0),
    )


def holds(path: Path, taught: int) -> None:
    """A store has the first samples, exactly as they were taught, and nothing about it is damaged."""
    assert check_store(path) == []
    reader = Store.open(path, "read")
    ids = np.arange(1, taught + 1)
    present, codes = reader.get(ids)
    assert present.all()
    assert codes.tobytes() == b"".join(codes_of(number) for number in ids.tolist())
    snapshot = reader.snapshot()
    assert snapshot.newest == len(reader) == taught
    assert torch.equal(snapshot.weights["top"]["t"], weights(snapshot.generation.number)["top"]["t"])
    reader.close()


@contextlib.contextmanager
def failing(kinds: int, after: int) -> Iterator[list[str]]:
    """Lets the disk fail; what was refused inside is told in the list, in a sentence."""
    shim: Any = ctypes.CDLL(None)
    refusals: list[str] = []
    shim.faults_begin(kinds, after, errno.EIO)
    try:
        yield refusals
    except SiestaError as error:
        refusals.append(str(error))
    finally:
        failures = shim.faults_end()
    if refusals:
        assert failures, f"refused on a healthy disk: {refusals}"
        assert "\n" not in refusals[0]
        assert "damaged" not in refusals[0], "a disk that fails for a while is no damage"


def teaching(path: Path, kinds: int, durability: str = "process") -> None:
    make(path).close()
    taught = refused = 0
    for after in range(MOST_CALLS):
        store = None
        with failing(kinds, after) as words:
            store = Store.open(path, durability=durability)
            while taught < 25 * (after + 1):
                taught = teach(store)
        refused += len(words)
        if store is not None:  # the very same goes on when the disk does
            holds(path, taught)
            taught = teach(store)
            store.close()
        holds(path, taught)
    assert refused


def sleeping(path: Path, kinds: int) -> None:
    store = make(path)
    taught = [teach(store) for _ in range(20)][-1]
    refused = 0
    for after in range(MOST_CALLS):
        before = store.generation()
        with failing(kinds, after) as words:
            assert sleep(store) > before
        refused += len(words)
        holds(path, taught)
        if words:
            assert store.generation() >= before
        assert sleep(store) == store.generation()
        taught = teach(store)
    assert refused
    store.close()
    Store.open(path).close()
    holds(path, taught)


def creating(path: Path, kinds: int) -> None:
    refused = 0
    for after in range(MOST_CALLS):
        with failing(kinds, after) as words:
            make(path).close()
        refused += len(words)
        if words:
            assert not path.exists() or check_store(path) == [], "half a learner is left"
            assert not list(path.parent.glob("*.partial")), "rubbish is left"
        if path.exists():
            holds(path, 0)
            shutil.rmtree(path)
    assert refused


def power(path: Path, kinds: int) -> None:
    teaching(path, kinds, "power")


def full(path: Path, kinds: int) -> None:
    """A disk of a few megabytes that fills up while we teach, sleep and open."""
    disk = path.parent
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], check=True, capture_output=True)
    store, taught = make(path, 100_000), 0
    for room in (400_000, 200_000, 100_000, 50_000, 20_000, 0):
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(max(shutil.disk_usage(disk).free - room - 8192, 0)))
        for step in (teach, sleep, teach):
            with contextlib.suppress(SiestaError):
                while True:
                    last = step(store)
                    taught = last if step is teach else taught
                    if step is sleep:
                        break
            holds(path, taught)
        ballast.unlink()
        taught = teach(store)
        assert sleep(store) == store.generation()
        holds(path, taught)
    store.close()


def killed(path: Path, kinds: int) -> None:
    """Dies with all of its samples still in the log."""
    store = Store.open(path)
    for _ in range(12):
        teach(store)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to make a failing disk with")
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source, "-ldl"], check=True)
    return library


def run(step: str, path: Path, kind: str = "write", shim: Path | None = None, before: tuple[str, ...] = ()) -> int:
    environment = {**os.environ, "FAULT_FOLDER": str(path.parent)}
    if shim is not None:
        environment["LD_PRELOAD"] = str(shim)
    done = subprocess.run(
        [*before, sys.executable, __file__, step, path, kind], env=environment, capture_output=True, text=True
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", ["teaching", "power", "sleeping", "creating"])
def test_a_disk_that_fails_costs_nothing_that_was_acknowledged(
    tmp_path: Path, shim: Path, step: str, kind: str
) -> None:
    assert run(step, tmp_path / "s", kind, shim) == 0


def test_a_disk_that_fills_up_again_and_again_costs_nothing(tmp_path: Path) -> None:
    before = ("unshare", "-m")
    if shutil.which("unshare") is None or subprocess.run([*before, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets us mount nothing")
    (tmp_path / "disk").mkdir()
    assert run("full", tmp_path / "disk" / "s", before=before) == 0


@pytest.fixture(scope="module")
def dead(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose teacher was killed, with a log of twelve samples."""
    path = tmp_path_factory.mktemp("dead") / "s"
    make(path).close()
    assert run("killed", path) == -signal.SIGKILL
    assert (path / "store.sqlite-wal").stat().st_size > 12 * 16384
    return path


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("damage", ["cut", "garbage"])
def test_a_torn_log_loses_the_last_samples_at_most(dead: Path, tmp_path: Path, damage: str, seed: int) -> None:
    path = tmp_path / "s"
    shutil.copytree(dead, path)
    (path / "store.sqlite-shm").unlink()  # lost with the machine
    log, rng = path / "store.sqlite-wal", np.random.default_rng(seed)
    data = log.read_bytes()
    torn = int(rng.integers(1, 40_000))
    log.write_bytes(data[:-torn] + (rng.bytes(torn) if damage == "garbage" else b""))
    store = Store.open(path)
    taught = store.snapshot().newest
    assert 0 < taught <= 12
    assert taught < 12 or torn < 16384
    holds(path, taught)
    assert teach(store) == taught + 1
    store.close()
    holds(path, taught + 1)


@pytest.mark.parametrize("seed", range(8))
def test_a_torn_database_is_found_and_never_read_wrongly(tmp_path: Path, seed: int) -> None:
    path, rng = tmp_path / "s", np.random.default_rng(seed)
    store = make(path)
    for _ in range(60):
        teach(store)
    store.close()
    file = path / "store.sqlite"
    data = file.read_bytes()
    torn = int(rng.integers(1, 16384))
    file.write_bytes(data[:-torn] + (rng.bytes(torn) if seed % 2 else b""))
    assert any(found.kind in ("database", "sample") for found in check_store(path))
    try:
        reader = Store.open(path, "read")
        with contextlib.closing(reader):
            present, codes = reader.get(np.arange(1, 61))
            expected = [codes_of(number) for number in (np.flatnonzero(present) + 1).tolist()]
            assert codes.tobytes() == b"".join(expected)
    except SiestaError as error:
        assert "\n" not in str(error)


def test_a_generation_cut_short_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s"
    store = make(path)
    teach(store)
    sleep(store)
    store.close()
    file = path / "generations" / "000001" / "top.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    (found,) = check_store(path)
    assert (found.kind, found.item) == ("generation", 1)
    with contextlib.closing(Store.open(path, "read")) as reader, pytest.raises(SiestaError, match=r"000001/top"):
        reader.snapshot()


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]), KINDS[sys.argv[3]])
