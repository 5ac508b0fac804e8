"""Load on one learner: one writer and four readers in processes of their own, with or without sleeps meanwhile."""

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
from siesta.learner import Siesta
from siesta.sleep.job import start_sleep
from siesta.sleep.options import SleepOptions

__all__ = ["IMAGES", "LoadResult", "TimedPrediction", "label", "run_load"]

IMAGES = 64
_READERS = 4
_PREDICT_SECONDS = 0.2  # mean interval between two predictions of a reader
_LEARN_SECONDS = 0.1  # interval between two samples of the writer
_CLASSES = 10
_FORKSERVER = multiprocessing.get_context("forkserver")
_FORKSERVER.set_forkserver_preload(["siesta.learner"])  # torch is imported once for all processes


@dataclass(frozen=True)
class TimedPrediction:
    """One prediction of a reader.

    Attributes:
        image: Number of the image.
        prediction: The answer.
        generation: Generation of the weights that gave it.
        learned: Number of samples that had been learned, as far as the reader knew.
        seconds: Latency.
    """

    image: int
    prediction: Prediction
    generation: int
    learned: int
    seconds: float


@dataclass(frozen=True)
class LoadResult:
    """What happened under load.

    Attributes:
        predictions: The predictions of each reader, in order.
        learned: Number of samples in the learner at the end.
        slowest_learn: Seconds that the slowest sample took to be learned.
    """

    predictions: list[list[TimedPrediction]]
    learned: int
    slowest_learn: float


def label(number: int) -> str:
    """Return the label of the sample that is learned as number `number`."""
    return f"class {number % _CLASSES}"


def run_load(path: Path, seconds: float, image_size: int, sleep_seconds: float | None = None) -> LoadResult:
    """Learn and predict for some seconds, and until at least one sleep is complete.

    Args:
        path: A learner that knows some classes.
        seconds: Duration.
        image_size: Size of its images in pixels.
        sleep_seconds: Budget of each of the consecutive background sleeps; None for no sleep.
    """
    pipes = []
    for reader in range(_READERS):
        parent_end, child_end = _FORKSERVER.Pipe()
        _FORKSERVER.Process(target=_read_on, args=(path, reader, image_size, child_end), daemon=True).start()
        child_end.close()
        pipes.append(parent_end)
    for pipe in pipes:
        pipe.recv()  # the reader has opened the learner and made its first prediction
    with _sleeps(path, sleep_seconds) as sleep_complete:
        for pipe in pipes:
            pipe.send("start")
        learned, slowest = _learn_on(path, seconds, sleep_complete, noise(IMAGES, image_size))
        for pipe in pipes:
            pipe.send("stop")
        predictions = [pipe.recv() for pipe in pipes]
    return LoadResult(predictions, learned, slowest)


def _learn_on(
    path: Path, seconds: float, sleep_complete: Event, images: list[npt.NDArray[np.uint8]]
) -> tuple[int, float]:
    slowest = 0.0
    end = time.monotonic() + seconds
    with Siesta.open(path) as learner:
        number = learner.info().samples.stored
        while (start := time.monotonic()) < end or not sleep_complete.is_set():
            learner.learn_one(images[number % IMAGES], label(number))
            slowest = max(slowest, time.monotonic() - start)
            number += 1
            time.sleep(max(start + _LEARN_SECONDS - time.monotonic(), 0))
    return number, slowest


def _read_on(path: Path, reader: int, image_size: int, pipe: Connection) -> None:
    """Predict at random intervals until told to stop; runs in the process of a reader."""
    torch.set_num_threads(1)
    images = noise(IMAGES, image_size)
    predictions = list[TimedPrediction]()
    rng = np.random.default_rng(reader)
    with Siesta.open(path, read_only=True) as learner:
        learner.predict_one(images[0])
        pipe.send("ready")
        pipe.recv()
        stopped = False
        while not stopped:
            number = int(rng.integers(IMAGES))
            start = time.monotonic()
            prediction = learner.predict_one(images[number])
            seconds = time.monotonic() - start
            learned = int(learner.head.total_counts().sum())
            predictions.append(TimedPrediction(number, prediction, learner.generation, learned, seconds))
            pause = rng.uniform(0.5, 1.5) * _PREDICT_SECONDS
            stopped = pipe.poll(max(start + pause - time.monotonic(), 0))
    pipe.send(predictions)


@contextmanager
def _sleeps(path: Path, seconds: float | None) -> Iterator[Event]:
    """Run consecutive background sleeps inside the block; the event is set once one is complete."""
    sleep_complete = Event()
    stopped = Event()

    def sleep_on() -> None:
        try:
            while not stopped.is_set():
                start_sleep(path, SleepOptions(seconds=seconds, batch_size=16, tolerance=1), nice=10).wait()
                time.sleep(1)  # until the readers have loaded the new weights
                sleep_complete.set()
        finally:
            sleep_complete.set()

    if seconds is None:
        sleep_complete.set()
        yield sleep_complete
        return
    sleeper = Thread(target=sleep_on)
    sleeper.start()
    try:
        yield sleep_complete
    finally:
        stopped.set()
        sleeper.join()
