"""What durability costs, how long readers wait for new weights, and prediction latency while the learner sleeps."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.concurrent_load import IMAGES, LoadResult, label, run_load
from benchmarks.learners import noise
from benchmarks.measure import Row, alternate, row
from siesta.learner import Siesta
from siesta.store import DURABILITIES

__all__ = ["run"]

_GROUP = 32


def run(image_size: int = 224, seconds: float = 60.0) -> Iterator[Row]:
    """Yield samples learned in a second at each durability, then latencies under load without and with sleeps."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _learning_speed(Path(folder), image_size)
        path = Path(folder) / "load.siesta"
        images = noise(IMAGES, image_size)
        with Siesta.create(path, image_size=image_size) as learner:
            learner.learn_many(images, map(label, range(IMAGES)))
        awake = run_load(path, seconds, image_size)
        asleep = run_load(path, seconds, image_size, seconds / 4)
        config = {"image_size": image_size, "readers": len(awake.predictions), "seconds": seconds}
        yield from _latencies(awake, asleep, config)


def _learning_speed(folder: Path, image_size: int) -> Iterator[Row]:
    """Learn one image at a time and in groups, from pixels to the commit."""
    images = noise(_GROUP, image_size)
    labels = [label(number) for number in range(_GROUP)]
    works = []
    for durability in DURABILITIES:
        path = folder / f"{durability}.siesta"
        Siesta.create(path, image_size=image_size).close()
        learner = Siesta.open(path, durability=durability)
        works += [lambda learner=learner: learner.learn_one(images[0], "one")]
        works += [lambda learner=learner: learner.learn_many(images, labels)]
    times = alternate(*works, repeats=10, block=3)
    for index, durability in enumerate(DURABILITIES):
        for size, seconds in zip((1, _GROUP), times[2 * index : 2 * index + 2], strict=True):
            yield row("learns", size / seconds, "1/s", durability=durability, group=size, image_size=image_size)


def _latencies(awake: LoadResult, asleep: LoadResult, config: Row) -> Iterator[Row]:
    awake_p95, asleep_p95 = (
        np.percentile([prediction.seconds for reader in result.predictions for prediction in reader], 95)
        for result in (awake, asleep)
    )
    yield row("predict_p95_awake", 1e3 * awake_p95, "ms", **config)
    yield row("predict_p95_asleep", 1e3 * asleep_p95, "ms", **config)
    yield row("predict_asleep_over_awake", asleep_p95 / awake_p95, "x", "<= 3", **config)
    swaps = [
        second.seconds
        for reader in asleep.predictions
        for first, second in pairwise(reader)
        if first.generation != second.generation
    ]
    yield row("swap_pause", 1e3 * statistics.median(swaps), "ms", swaps=len(swaps), **config)
    yield row("longest_lesson", 1e3 * asleep.slowest_learn, "ms", **config)
