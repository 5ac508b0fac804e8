"""One teacher and some paced readers on one learner, each in a process of its own, with or without sleeps beside."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Thread

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.learners import noise
from siesta.contracts import Prediction
from siesta.jobs import begin_sleep
from siesta.learner import Siesta

__all__ = ["PICTURES", "Asked", "Crowd", "gather", "label"]

PICTURES = 64
_READERS = 4
_ASKED_EVERY, _TAUGHT_EVERY = 0.2, 0.1  # seconds
_CLASSES = 10
_FORKSERVER = multiprocessing.get_context("forkserver")
_FORKSERVER.set_forkserver_preload(["siesta.learner"])  # torch is imported once for all


@dataclass(frozen=True)
class Asked:
    """One question.

    Attributes:
        picture: Its number.
        answer: To it.
        generation: Of the weights that gave it.
        taught: How many samples had been taught, as far as the reader knew.
        seconds: That it took.
    """

    picture: int
    answer: Prediction
    generation: int
    taught: int
    seconds: float


@dataclass(frozen=True)
class Crowd:
    """What readers asked, each in order, how many samples were taught, and how long the longest of them took."""

    asked: list[list[Asked]]
    taught: int
    longest_lesson: float


def label(number: int) -> str:
    """Of the sample that is taught as number so."""
    return f"class {number % _CLASSES}"


def gather(path: Path, seconds: float, image_size: int, asleep: float | None = None) -> Crowd:
    """Teaches and asks for so many seconds, and until a sleep is over.

    Args:
        path: A learner that knows something.
        seconds: How long.
        image_size: Of its pictures.
        asleep: Seconds of the sleeps that follow one another in the background; none when None.
    """
    pipes = []
    for reader in range(_READERS):
        ours, theirs = _FORKSERVER.Pipe()
        _FORKSERVER.Process(target=_ask_on, args=(path, reader, image_size, theirs), daemon=True).start()
        theirs.close()
        pipes.append(ours)
    for pipe in pipes:
        pipe.recv()  # it has opened the learner, and been answered
    with _sleeps(path, asleep) as one_is_over:
        for pipe in pipes:
            pipe.send("begin")
        taught, longest = _teach_on(path, seconds, one_is_over, noise(PICTURES, image_size))
        for pipe in pipes:
            pipe.send("enough")
        asked = [pipe.recv() for pipe in pipes]
    return Crowd(asked, taught, longest)


def _teach_on(
    path: Path, seconds: float, one_is_over: Event, pictures: list[npt.NDArray[np.uint8]]
) -> tuple[int, float]:
    longest, end = 0.0, time.monotonic() + seconds
    with Siesta.open(path) as learner:
        number = len(learner.store)
        while (start := time.monotonic()) < end or not one_is_over.is_set():
            learner.learn_one(pictures[number % PICTURES], label(number))
            longest = max(longest, time.monotonic() - start)
            number += 1
            time.sleep(max(start + _TAUGHT_EVERY - time.monotonic(), 0))
    return number, longest


def _ask_on(path: Path, reader: int, image_size: int, pipe: Connection) -> None:
    torch.set_num_threads(1)
    pictures, asked = noise(PICTURES, image_size), list[Asked]()
    rng = np.random.default_rng(reader)
    with Siesta.open(path, read_only=True) as learner:
        learner.predict_one(pictures[0])
        pipe.send("ready")
        pipe.recv()
        enough = False
        while not enough:
            number, start = int(rng.integers(PICTURES)), time.monotonic()
            answer = learner.predict_one(pictures[number])
            took = time.monotonic() - start
            asked.append(Asked(number, answer, learner.generation, int(learner._head.taught().sum()), took))
            enough = pipe.poll(max(start + rng.uniform(0.5, 1.5) * _ASKED_EVERY - time.monotonic(), 0))
    pipe.send(asked)


@contextmanager
def _sleeps(path: Path, seconds: float | None) -> Iterator[Event]:
    """One sleep after another, in the background; the event says that one is over, or that there is none."""
    one_is_over, enough = Event(), Event()

    def sleep_on() -> None:
        try:
            while not enough.is_set():
                begin_sleep(path, {"seconds": seconds, "batch_size": 16, "tolerance": 1, "nice": 10}).wait()
                time.sleep(1)  # to be noticed
                one_is_over.set()
        finally:
            one_is_over.set()

    if seconds is None:
        one_is_over.set()
        yield one_is_over
        return
    sleeper = Thread(target=sleep_on)
    sleeper.start()
    try:
        yield one_is_over
    finally:
        enough.set()
        sleeper.join()
