"""The store at 10 K, 100 K and 1.28 M samples: planning, adding with eviction, opening, sleeping, disk and memory."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.measure import Row, row
from siesta.learner import IN_MEMORY, Siesta
from siesta.policies import BalancedUniform
from siesta.sleep.batch import id_batches
from siesta.store import NewSample, Store

__all__ = ["SIZES", "run"]

SIZES = (10_000, 100_000, 1_280_000)
_CLASS_SIZE = 1280  # samples of a class, as in ImageNet; a larger store has more classes
_SAMPLE_BYTES = 1568 + 32
_FEATURES = 1280
_BATCH = 64


def run(sizes: tuple[int, ...] = SIZES) -> Iterator[Row]:
    """Yield rows for each size, and the ratio between the largest and the smallest cost."""
    planning: list[float] = []
    adding: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.siesta"
        Siesta.create(empty).close()
        for size in sizes:
            path = Path(folder) / f"{size}.siesta"
            Siesta.create(path, memory=size * _SAMPLE_BYTES).close()
            store = Store.open(path)
            _fill(store, size, _classes(size))
            planning.append(_plan(store, size) / size)
            adding.append(_add(store))
            yield row("plan_seconds", planning[-1] * size, "s", "< 2 at 1.28 M" if size >= 10**6 else "", samples=size)
            yield row("add_with_eviction", 1e6 * adding[-1], "us/sample", samples=size, group=1)
            store.close()
            yield row("disk_bytes", (path / "store.sqlite").stat().st_size / size, "bytes/sample", samples=size)
        yield row("plan_flatness", max(planning) / min(planning), "x", "<= 2", sizes=sizes)
        yield row("add_flatness", max(adding) / min(adding), "x", "<= 2", sizes=sizes)
        yield row(
            "sleep_store_over_ram", _sleep_over_ram(path, sizes[-1]), "x", ">= 0.9", samples=sizes[-1], batch=_BATCH
        )
        seconds, nothing = _process(empty, "open")
        yield row("open_seconds", seconds, "s", samples=0)
        for mode in ("open", "plan", "read_all"):
            seconds, peak = _process(path, mode)
            if mode == "open":
                yield row("open_seconds", seconds, "s", "< 1", samples=sizes[-1])
            growth = (peak - nothing) / 1e6
            yield row(f"rss_growth_{mode}", growth, "MB", "<= 2100" if mode == "read_all" else "", samples=sizes[-1])


def _samples(count: int, classes: int, seed: int) -> list[NewSample]:
    rng = np.random.default_rng(seed)
    feature = rng.normal(size=_FEATURES).astype(np.float32)
    labels = rng.integers(classes, size=count)
    return [NewSample(f"class {label}", rng.bytes(1568), feature) for label in labels]


def _fill(store: Store, size: int, classes: int) -> None:
    for start in range(0, size, 10_000):
        store.add(_samples(min(10_000, size - start), classes, seed=start))


def _classes(size: int) -> int:
    return -(-size // _CLASS_SIZE)


def _plan(store: Store, draws: int) -> float:
    """Return the seconds to plan as many balanced draws as there are samples, including reading the index."""
    start = time.perf_counter()
    sample_ids = BalancedUniform().sample_ids(store.samples.memory(), np.random.default_rng(0))
    planned = sum(len(batch) for batch in id_batches(sample_ids, 64, draws))
    assert planned == draws
    return time.perf_counter() - start


def _add(store: Store, count: int = 3000) -> float:
    """Return the median seconds to add one sample to a full store, each in its own transaction."""
    assert len(store) == store.budget.capacity
    times = []
    for sample in _samples(count, _classes(store.budget.capacity), seed=1):
        start = time.perf_counter()
        store.add([sample])
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def _sleep_over_ram(path: Path, size: int) -> float:
    """Return the sleep speed on a large store on disk relative to a small one in RAM with as many classes."""
    in_ram = Siesta.create(IN_MEMORY, memory=10_000 * _SAMPLE_BYTES)
    _fill(in_ram._store, 10_000, _classes(size))
    with Siesta.open(path) as on_disk:
        rates: tuple[list[float], list[float]] = ([], [])
        for _ in range(4):
            for learner, own_rates in zip((on_disk, in_ram), rates, strict=True):
                own_rates.append(_rate(learner))
    return statistics.median(rates[0][1:]) / statistics.median(rates[1][1:])  # the first of each warms up


def _rate(learner: Siesta) -> float:
    speeds: list[float] = []
    learner.sleep(
        updates=4 * _BATCH,
        batch_size=_BATCH,
        lr=1e-6,
        on_progress=lambda progress: speeds.append(progress.updates_per_second),
    )
    return speeds[-1]


def _process(path: Path, mode: str) -> tuple[float, int]:
    """Return opening seconds and peak resident bytes of a process that opens a learner and executes `mode`."""
    command = [sys.executable, "-m", "benchmarks.store", str(path), mode]
    seconds, peak = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return seconds, peak


def _child(path: str, mode: str) -> None:
    start = time.perf_counter()
    store = Store.open(Path(path), "read")
    Siesta(store)
    seconds = time.perf_counter() - start
    if mode != "open":
        memory = store.samples.memory()
        sample_ids = id_batches(BalancedUniform().sample_ids(memory, np.random.default_rng(0)), 64, len(memory.ids))
        for ids in sample_ids if mode == "read_all" else islice(sample_ids, 1):
            store.samples.get(ids)
    # not getrusage, whose maximum is inherited from the parent process
    (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps((seconds, int(peak.split()[1]) * 1024)))


if __name__ == "__main__":
    _child(*sys.argv[1:])
