"""Disks that fail while a store is written, torn files and a full disk; this cuts across the whole store.

The steps (teaching, sleeping, creating, power, full, killed) run in a child process, with faults.c preloaded or on a
disk of their own.
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
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest

from siesta.errors import SiestaError
from siesta.store import OVERHEAD_BYTES, NewSample, Store, schema
from siesta.store.check import check_store

WRITES = 1
SYNCS = 2
TORN = 4
KINDS = {"write": WRITES, "sync": SYNCS, "torn": TORN}
CODE_BYTES = 600
MAX_CALLS = 30  # more calls of write or sync than any one step makes


def codes_of(number: int) -> bytes:
    return np.random.default_rng(number).bytes(CODE_BYTES)


def teach(store: Store) -> int:
    """Teach the next sample, whose codes depend on its id; return the id."""
    number = store.snapshot().newest + 1
    sample = NewSample(f"class {number % 3}", codes_of(number), np.full(4, number, dtype=np.float32))
    assert [stored.id for stored in store.add([sample])] == [number]
    return number


def weights(number: int) -> dict[str, dict[str, npt.NDArray[Any]]]:
    return {"top": {"t": np.full((50, 50), float(number))}, "head": {"h": np.array([number])}}


class NoSums:
    """Sums for a sleep during which nothing is taught."""

    def add(self, *_: object) -> None:
        raise AssertionError

    def totals(self, *_: object) -> list[tuple[int, int, npt.NDArray[np.float64]]]:
        return []

    def statistics(self) -> None:
        return None


def sleep(store: Store) -> int:
    with store.sleeping():
        number = store.generations.add(weights(store.generations.newest() + 1), store.snapshot().newest, {})
        store.swap.activate(number, NoSums())
    return number


def make(path: Path, capacity: int = 1000) -> Store:
    memory = capacity * (CODE_BYTES + OVERHEAD_BYTES)
    return Store.create(
        path,
        settings={"code_bytes": CODE_BYTES, "memory_bytes": memory, "seed": 0},
        constants={"bottom": {"w": np.arange(4.0)}},
        generation=weights(0),
    )


def assert_holds(path: Path, taught: int) -> None:
    """Assert that a store has the first `taught` samples unchanged, and that nothing is damaged."""
    assert check_store(path) == []
    reader = Store.open(path, "read")
    ids = np.arange(1, taught + 1)
    present, codes = reader.samples.get(ids)
    assert present.all()
    assert codes.tobytes() == b"".join(codes_of(number) for number in ids.tolist())
    snapshot = reader.snapshot()
    assert snapshot.newest == len(reader) == taught
    assert np.array_equal(snapshot.weights["top"]["t"], weights(snapshot.generation.number)["top"]["t"])
    reader.close()


@contextlib.contextmanager
def failing(kinds: int, after: int) -> Iterator[list[str]]:
    """Let the disk fail inside; the message of an error is put into the list."""
    shim: Any = ctypes.CDLL(None)
    errors: list[str] = []
    shim.faults_begin(kinds, after, errno.EIO)
    try:
        yield errors
    except SiestaError as error:
        errors.append(str(error))
    finally:
        injected = shim.faults_end()
    if errors:
        assert injected, f"refused on a healthy disk: {errors}"
        assert "\n" not in errors[0]
        assert "damaged" not in errors[0], "a disk that fails for a while is not damaged"


def teaching(path: Path, kinds: int, durability: str = "process") -> None:
    make(path).close()
    taught = failures = 0
    for after in range(MAX_CALLS):
        store = None
        with failing(kinds, after) as errors:
            store = Store.open(path, durability=durability)
            while taught < 25 * (after + 1):
                taught = teach(store)
        failures += len(errors)
        if store is not None:  # the same store works again when the disk does
            assert_holds(path, taught)
            taught = teach(store)
            store.close()
        assert_holds(path, taught)
    assert failures


def sleeping(path: Path, kinds: int) -> None:
    store = make(path)
    taught = [teach(store) for _ in range(20)][-1]
    failures = 0
    for after in range(MAX_CALLS):
        before = store.generations.active()
        with failing(kinds, after) as errors:
            assert sleep(store) > before
        failures += len(errors)
        assert_holds(path, taught)
        if errors:
            assert store.generations.active() >= before
        assert sleep(store) == store.generations.active()
        taught = teach(store)
    assert failures
    store.close()
    Store.open(path).close()
    assert_holds(path, taught)


def creating(path: Path, kinds: int) -> None:
    failures = 0
    for after in range(MAX_CALLS):
        with failing(kinds, after) as errors:
            make(path).close()
        failures += len(errors)
        if errors:
            assert not path.exists() or check_store(path) == [], "an incomplete learner is left"
            assert not list(path.parent.glob("*.partial")), "a partial folder is left"
        if path.exists():
            assert_holds(path, 0)
            shutil.rmtree(path)
    assert failures


def power(path: Path, kinds: int) -> None:
    teaching(path, kinds, "power")


def full(path: Path) -> None:
    """Teach and sleep on a disk of a few megabytes that is full again and again."""
    disk = path.parent
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], check=True, capture_output=True)
    store = make(path, 100_000)
    taught = 0
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
            assert_holds(path, taught)
        ballast.unlink()
        taught = teach(store)
        assert sleep(store) == store.generations.active()
        assert_holds(path, taught)
    store.close()


def unsynced(path: Path) -> None:
    """Have the sync of a commit refused, and be killed before the store is closed."""
    make(path).close()
    store = Store.open(path, durability="power")
    teach(store)
    with failing(SYNCS, 0) as errors:
        teach(store)
    assert "refused to sync the last change, which may have been made all the same" in errors[0]
    os.kill(os.getpid(), signal.SIGKILL)


def unsynced_once(path: Path) -> None:
    """The same on a disk that works again at once."""
    is_undone = schema.Transaction._is_undone

    def healed(transaction: schema.Transaction) -> bool:
        ctypes.CDLL(None).faults_begin(0, 0, 0)
        return is_undone(transaction)

    make(path).close()
    store = Store.open(path, durability="power")
    teach(store)
    ctypes.CDLL(None).faults_begin(SYNCS, 0, errno.EIO)
    patched = mock.patch.object(schema.Transaction, "_is_undone", healed)
    with patched, pytest.raises(SiestaError, match="the last change was not made"):
        teach(store)
    os.kill(os.getpid(), signal.SIGKILL)


def killed(path: Path) -> None:
    """Be killed with all samples still in the log."""
    store = Store.open(path)
    for _ in range(12):
        teach(store)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler for the library that makes a disk fail")
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source, "-ldl"], check=True)
    return library


def run(step: str, path: Path, shim: Path | None = None, before: tuple[str, ...] = ()) -> int:
    environment = {**os.environ, "FAULT_FOLDER": str(path.parent)}
    if shim is not None:
        environment["LD_PRELOAD"] = str(shim)
    done = subprocess.run(
        [*before, sys.executable, __file__, step, path], env=environment, capture_output=True, text=True
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


@pytest.mark.parametrize("step", ["teaching", "power", "sleeping", "creating"])
def test_a_disk_that_fails_costs_nothing_that_was_acknowledged(tmp_path: Path, shim: Path, step: str) -> None:
    assert run(step, tmp_path, shim) == 0


@pytest.mark.parametrize(("step", "stored"), [("unsynced", 2), ("unsynced_once", 1)])
def test_a_commit_that_is_not_synced_is_undone_or_called_uncertain(
    tmp_path: Path, shim: Path, step: str, stored: int
) -> None:
    assert run(step, tmp_path / "s", shim) == -signal.SIGKILL
    assert_holds(tmp_path / "s", stored)


def test_a_disk_that_fills_up_again_and_again_costs_nothing(tmp_path: Path) -> None:
    before = ("unshare", "-m")
    if shutil.which("unshare") is None or subprocess.run([*before, "true"], capture_output=True).returncode:
        pytest.skip("mounting a disk is not permitted here")
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
    log = path / "store.sqlite-wal"
    rng = np.random.default_rng(seed)
    data = log.read_bytes()
    torn = int(rng.integers(1, 40_000))
    log.write_bytes(data[:-torn] + (rng.bytes(torn) if damage == "garbage" else b""))
    store = Store.open(path)
    taught = store.snapshot().newest
    assert 0 < taught <= 12
    assert taught < 12 or torn < 16384
    assert_holds(path, taught)
    assert teach(store) == taught + 1
    store.close()
    assert_holds(path, taught + 1)


@pytest.mark.parametrize("seed", range(8))
def test_a_torn_database_is_found_and_never_read_wrongly(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "s"
    rng = np.random.default_rng(seed)
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
            present, codes = reader.samples.get(np.arange(1, 61))
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


def main(step: str, path: Path) -> None:
    """Run a step; those that let the disk fail run with each kind of failure, in a folder of its own."""
    if step in ("full", "killed", "unsynced", "unsynced_once"):
        globals()[step](path)
        return
    for name, kind in KINDS.items():
        (path / name).mkdir()
        globals()[step](path / name / "s", kind)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
