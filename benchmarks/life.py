"""A learner that lives: what durability costs, how long a swap is felt, and how asking feels beside a sleep."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.crowd import PICTURES, Crowd, gather, label
from benchmarks.learners import noise
from benchmarks.measure import Row, alternate, row
from siesta.learner import Siesta
from siesta.store import DURABILITIES

__all__ = ["run"]

_GROUP = 32


def run(image_size: int = 224, seconds: float = 60.0) -> Iterator[Row]:
    """Learns a second at both levels, then a crowd with and without sleeps beside it."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _learns(Path(folder), image_size)
        path = Path(folder) / "crowd.siesta"
        pictures = noise(PICTURES, image_size)
        with Siesta.create(path, image_size=image_size) as learner:
            learner.learn_many(pictures, map(label, range(PICTURES)))
        awake = gather(path, seconds, image_size)
        asleep = gather(path, seconds, image_size, seconds / 4)
        yield from _answers(awake, asleep, {"image_size": image_size, "readers": len(awake.asked), "seconds": seconds})


def _learns(folder: Path, image_size: int) -> Iterator[Row]:
    """One picture at a time and in groups: the whole way of a picture, the commit included."""
    pictures, labels = noise(_GROUP, image_size), [label(number) for number in range(_GROUP)]
    works = []
    for durability in DURABILITIES:
        path = folder / f"{durability}.siesta"
        Siesta.create(path, image_size=image_size).close()
        learner = Siesta.open(path, durability=durability)
        works += [lambda learner=learner: learner.learn_one(pictures[0], "one")]
        works += [lambda learner=learner: learner.learn_many(pictures, labels)]
    times = alternate(*works, repeats=10, block=3)
    for index, durability in enumerate(DURABILITIES):
        for size, seconds in zip((1, _GROUP), times[2 * index : 2 * index + 2], strict=True):
            yield row("learns", size / seconds, "1/s", durability=durability, group=size, image_size=image_size)


def _answers(awake: Crowd, asleep: Crowd, config: Row) -> Iterator[Row]:
    without, beside = (
        np.percentile([question.seconds for asked in crowd.asked for question in asked], 95)
        for crowd in (awake, asleep)
    )
    yield row("predict_p95_awake", 1e3 * without, "ms", **config)
    yield row("predict_p95_asleep", 1e3 * beside, "ms", **config)
    yield row("predict_asleep_over_awake", beside / without, "x", "<= 3", **config)
    swaps = [
        second.seconds
        for asked in asleep.asked
        for first, second in pairwise(asked)
        if first.generation != second.generation
    ]
    yield row("swap_pause", 1e3 * statistics.median(swaps), "ms", swaps=len(swaps), **config)
    yield row("longest_lesson", 1e3 * asleep.longest_lesson, "ms", **config)
