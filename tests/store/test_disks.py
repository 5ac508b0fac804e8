"""Full and read-only disks, in a mount namespace of a child process; it cuts across the whole store."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import subprocess
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from siesta.errors import BadInput, SiestaError
from siesta.store import Store
from tests.store.stores import (
    FORKSERVER,
    LABELS,
    everything,
    is_one_line,
    make_store,
    sample,
    swap,
    weights,
)

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
    failure = ours.recv()
    child.join()
    if failure == "skip":
        pytest.skip("this machine lets us mount nothing")
    assert not failure, failure


def small_disk(path: Path, size: str = "2m") -> None:
    mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", path)


def fill_disk(folder: Path) -> Path:
    """Write a file that takes all the room that is left, and return it."""
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
    assert is_one_line(caught.value)


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
    assert store.session.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    store.close()


def _swap_when_full(path: Path) -> None:
    small_disk(path)
    store = make_store(path / "s", capacity=10)
    store.add([sample("ant", number) for number in range(10)])
    before = everything(store)
    ballast = fill_disk(path)
    big = {"top": {"t": np.zeros(100_000)}, "head": {"h": np.array([1])}}
    refused(lambda: swap(store, big, np.array([1]), {}))
    assert everything(store) == before
    assert store.generations.active() == 0
    assert np.array_equal(store.snapshot().weights["top"]["t"], weights(0)["top"]["t"])
    assert [folder.name for folder in (path / "s" / "generations").iterdir()] == ["000000"], "room was not given back"
    ballast.unlink()
    swap(store, big, np.array([1]), {})
    assert store.generations.active() == 1
    store.close()


def _create_when_full(path: Path) -> None:
    small_disk(path)
    ballast = fill_disk(path)
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
    ballast = fill_disk(path)
    reader = Store.open(path / "s", "read")
    assert everything(reader)[-1] == 0
    reader.close()
    with pytest.raises(BadInput) as caught:
        Store.open(path / "s").add([sample("ant", 1)])
    assert is_one_line(caught.value)
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
    assert [record.taught for record in reader.classes.all()] == [3, 3, 1]
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
        assert is_one_line(error)
        return
    assert reader.samples.get(np.array([newest]))[0].all(), "acknowledged samples are silently missing"
    reader.close()


FULL_DISK: Sequence[Target] = (_teach_until_full, _swap_when_full, _create_when_full, _open_when_full)


@pytest.mark.parametrize("target", FULL_DISK, ids=lambda target: target.__name__.strip("_"))
def test_a_full_disk_refuses_with_a_message_and_damages_nothing(tmp_path: Path, target: Target) -> None:
    run_in_own_mounts(target, tmp_path)


@pytest.mark.parametrize("target", [_read_only, _killed_then_read_only], ids=lambda target: target.__name__.strip("_"))
def test_a_read_only_disk_can_be_read(path: Path, target: Target) -> None:
    run_in_own_mounts(target, path.parent)
