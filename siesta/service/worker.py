"""Thread that owns the learner and processes requests in batches.

A learner and its database belong to one thread. Requests submit tasks to a queue and wait. The thread takes all tasks
that are queued, learns the images of all learn tasks together, predicts those of all predict tasks together, and then
runs the other tasks one by one. Further tasks arrive meanwhile: batches grow with the load, and no task is held back to
fill one.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, Generic, TypeAlias, TypeVar

import numpy.typing as npt

from siesta.contracts import Input, Prediction
from siesta.errors import BadInput, Damaged, DiskRefused, SiestaError
from siesta.learner import SAMPLES_PER_TRANSACTION, Siesta
from siesta.pipeline import Inputs
from siesta.service.events import EventHub
from siesta.service.metrics import Metrics
from siesta.service.problems import Problem
from siesta.store import database_errors

__all__ = ["LabelledInput", "LearnResult", "LearnerThread", "PredictOptions", "PredictResult"]

_POLL_SECONDS = 0.5  # between two checks for what other processes changed
_log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class LabelledInput:
    """Image or vector to learn, as `Input.read` returns it, with its label and an encoded thumbnail, if one is kept."""

    read: npt.NDArray[Any]
    label: str
    thumbnail: bytes | None = None


@dataclass(frozen=True)
class PredictOptions:
    """Options of a prediction, see `Siesta.predict_encoded`."""

    top: int = 5
    threshold: float | None = None
    error_rate: float | None = None


@dataclass(frozen=True)
class LearnResult:
    """Ids of the stored samples, and the generation that computed their features."""

    ids: list[int]
    generation: int


@dataclass(frozen=True)
class PredictResult:
    """Predictions, and the generation that made them."""

    predictions: list[Prediction]
    generation: int


@dataclass(eq=False)
class _LearnTask:
    images: Sequence[LabelledInput]
    done: Future[LearnResult] = field(default_factory=Future)
    ids: list[int] = field(default_factory=list)


@dataclass(eq=False)
class _PredictTask:
    images: Inputs
    options: PredictOptions
    done: Future[PredictResult] = field(default_factory=Future)


@dataclass(eq=False)
class _CallTask(Generic[T]):
    function: Callable[[Siesta], T]
    modifies: bool
    done: Future[T] = field(default_factory=Future)


_Task: TypeAlias = _LearnTask | _PredictTask | _CallTask[Any]


class LearnerThread:
    """Thread that owns a learner, and the queue of tasks for it.

    Attributes:
        path: Folder of the learner.
        input: What the learner takes, images or vectors; known once it is open.
        revision: Number that increases with every change of the learner.
        generation: Number of the weights in use.
        failure: Why the learner cannot be changed at present: its folder is missing, or it is damaged. None if it can.
    """

    def __init__(
        self,
        path: Path,
        metrics: Metrics,
        *,
        durability: str = "process",
        thumbnails: bool = True,
        events: EventHub | None = None,
    ) -> None:
        """Create the thread; `open` starts it.

        Args:
            path: Folder of the learner.
            metrics: Counters that the thread updates.
            durability: What an acknowledged sample survives, see `Siesta.open`.
            thumbnails: Whether thumbnails are kept; if not, existing ones are removed.
            events: Told what was learned and predicted.
        """
        self.path = path.absolute()
        self.input: Input
        self.revision = 0
        self.generation = 0
        self.failure: SiestaError | None = None
        self._metrics = metrics
        self._durability = durability
        self._thumbnails = thumbnails
        self._events = events
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()  # None: the thread is to end
        self._opened: Future[None] = Future()
        self._thread = Thread(target=self._run, name="learner", daemon=True)
        self._closed = False
        self._data_version = 0

    def open(self) -> None:
        """Start the thread and open the learner in it; raise what prevents it from being opened."""
        self._thread.start()
        self._opened.result()

    def close(self) -> None:
        """Finish the tasks in the queue and close the learner."""
        self._closed = True
        self._tasks.put(None)
        self._thread.join()

    @property
    def ready(self) -> bool:
        """Whether tasks are accepted."""
        return self._thread.is_alive() and not self._closed

    # -- called by requests ---------------------------------------------------------------------------------------

    async def learn(self, images: Sequence[LabelledInput]) -> LearnResult:
        """Learn images; return when their samples are durable."""
        task = _LearnTask(images)
        return await self._submit(task, task.done)

    async def predict(self, images: Inputs, options: PredictOptions) -> PredictResult:
        """Predict the labels of images."""
        task = _PredictTask(images, options)
        return await self._submit(task, task.done)

    async def query(self, function: Callable[[Siesta], T]) -> T:
        """Call a function that changes nothing with the learner, in the learner's thread."""
        task = _CallTask(function, modifies=False)
        return await self._submit(task, task.done)

    async def modify(self, function: Callable[[Siesta], T]) -> T:
        """Call a function that changes the learner, in the learner's thread."""
        task = _CallTask(function, modifies=True)
        return await self._submit(task, task.done)

    async def _submit(self, task: _Task, done: Future[T]) -> T:
        if not self.ready:
            raise Problem(503, "the service is closing: try again in a moment")
        self._tasks.put(task)
        return await asyncio.wrap_future(done)

    # -- run in the learner's thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            learner = Siesta.open(self.path, durability=self._durability)
            if not self._thumbnails:
                learner.drop_thumbnails()
        except BaseException as error:
            self._opened.set_exception(error)
            return
        with learner:
            self.input = learner.pipeline.input
            self.generation = learner.generation
            self._data_version = learner.data_version()
            self._opened.set_result(None)
            while (batch := self._next_batch()) is not None:
                self._process(learner, batch)

    def _next_batch(self) -> list[_Task] | None:
        """Wait for a task and return all in the queue, in order; an empty list after a timeout, None at the end."""
        batch: list[_Task] = []
        with suppress(queue.Empty):
            task = self._tasks.get(timeout=_POLL_SECONDS)
            while task is not None:
                batch.append(task)
                task = self._tasks.get_nowait()
            if not batch:
                return None
            self._tasks.put(None)  # to end after this batch
        return batch

    def _process(self, learner: Siesta, batch: Iterable[_Task]) -> None:
        tasks = [task for task in batch if task.done.set_running_or_notify_cancel()]
        self._learn(learner, [task for task in tasks if isinstance(task, _LearnTask)])
        self._predict(learner, [task for task in tasks if isinstance(task, _PredictTask)])
        for task in tasks:
            if isinstance(task, _CallTask):
                self._call(learner, task)
        self._check_for_changes(learner)

    def _learn(self, learner: Siesta, tasks: Sequence[_LearnTask]) -> None:
        """Learn the images of all tasks in groups of one transaction; a failure fails the tasks of its group only."""
        remaining = [(task, image) for task in tasks for image in task.images]
        while remaining:
            group = remaining[:SAMPLES_PER_TRANSACTION]
            remaining = remaining[SAMPLES_PER_TRANSACTION:]
            images = [image for _, image in group]
            start = time.monotonic()
            try:
                with self._modifying(learner):
                    ids = learner.learn_many([image.read for image in images], [image.label for image in images])
            except Exception as error:
                failed = dict.fromkeys(task for task, _ in group)
                for task in failed:
                    task.done.set_exception(self._learn_failure(error, len(task.ids)))
                remaining = [(task, image) for task, image in remaining if task not in failed]
                continue
            self._metrics.record_learn(len(group), time.monotonic() - start)
            self.revision += 1
            for (task, _), sample_id in zip(group, ids, strict=True):
                task.ids.append(sample_id)
                if len(task.ids) == len(task.images):
                    task.done.set_result(LearnResult(task.ids, learner.generation))
            self._keep_thumbnails(learner, zip(ids, images, strict=True))
            if self._events is not None:
                self._events.learned(learner, ids, [image.label for image in images])

    def _learn_failure(self, error: Exception, stored: int) -> Exception:
        """Return the problem for a failed task: images and labels were checked before, so bad input means the disk."""
        if not isinstance(error, BadInput):
            return error
        return Problem(503, str(error).replace(str(self.path), self.path.name), safe=stored)

    def _keep_thumbnails(self, learner: Siesta, images: Iterable[tuple[int, LabelledInput]]) -> None:
        """Store thumbnails after the answer, so that no client waits for them; losing them in a kill is acceptable."""
        thumbnails = {sample_id: image.thumbnail for sample_id, image in images if image.thumbnail is not None}
        if thumbnails and self._thumbnails:
            try:
                with self._database_errors():
                    learner.keep_thumbnails(thumbnails)
            except SiestaError as error:
                _log.warning("thumbnails were not stored: %s", error)

    def _predict(self, learner: Siesta, tasks: Sequence[_PredictTask]) -> None:
        """Predict the images of all tasks that have the same options together."""
        by_options: dict[PredictOptions, list[_PredictTask]] = defaultdict(list)
        for task in tasks:
            by_options[task.options].append(task)
        for options, group in by_options.items():
            images = [image for task in group for image in task.images]
            start = time.monotonic()
            try:
                with self._database_errors():
                    predictions = learner.predict_many(images, **vars(options))
            except Exception as error:
                for task in group:
                    task.done.set_exception(self._predict_failure(error))
                continue
            self._metrics.record_predict(len(images), time.monotonic() - start)
            remaining = iter(predictions)
            for task in group:
                own = [next(remaining) for _ in task.images]
                task.done.set_result(PredictResult(own, learner.generation))
            if self._events is not None:
                self._events.predicted(learner, predictions)

    def _predict_failure(self, error: Exception) -> Exception:
        """Return the problem for a failed task: images were checked before, so bad input means "not learned yet"."""
        not_learned_yet = isinstance(error, BadInput) and not isinstance(error, DiskRefused)
        return Problem(409, str(error)) if not_learned_yet else error

    def _call(self, learner: Siesta, task: _CallTask[Any]) -> None:
        self.revision += task.modifies  # even if it fails, for it may have changed something before
        try:
            with self._modifying(learner) if task.modifies else self._database_errors():
                result = task.function(learner)
        except Exception as error:
            task.done.set_exception(error)
        else:
            task.done.set_result(result)

    @contextmanager
    def _modifying(self, learner: Siesta) -> Iterator[None]:
        """Check the folder before and after a change, so that nothing is acknowledged that was lost with the folder."""
        with self._database_errors():
            learner.check_folder()
            yield
            learner.check_folder()

    @contextmanager
    def _database_errors(self) -> Iterator[None]:
        """Convert SQLite's errors to those of the library, and remember damage, which does not go away."""
        try:
            with database_errors(self.path):
                yield
        except Damaged as error:
            self.failure = error
            raise

    def _check_for_changes(self, learner: Siesta) -> None:
        """Notice what other processes did: new weights, other changes of the data, or a missing folder."""
        try:
            with database_errors(self.path):
                learner.check_folder()
                data_version = learner.data_version()
                generation = learner.active_generation()
        except SiestaError as error:
            if str(error) != str(self.failure):  # logged once, not at every check
                _log.warning("%s", error)
            self.failure = error
            return
        if not isinstance(self.failure, Damaged):
            self.failure = None
        if (data_version, generation) != (self._data_version, self.generation):
            self._data_version = data_version
            self.generation = generation
            self.revision += 1
