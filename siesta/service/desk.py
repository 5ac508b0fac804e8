"""The one thread that owns the learner: what arrives together goes through the network together.

A learner and its database belong to one thread. Requests lay their work on the desk and wait; the thread takes all that
lies there, teaches the lessons as one, answers the questions as one, and then runs errands, which is everything else.
While it does so, more arrives: nobody waits for others to come, and a crowd is served in few passes.
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

from siesta.contracts import Prediction
from siesta.errors import BadInput, Damaged, DiskRefused, SiestaError
from siesta.images import Pixels
from siesta.learner import Siesta
from siesta.service.metrics import Metrics
from siesta.service.problems import Problem
from siesta.store import database_errors

__all__ = ["Answered", "Desk", "Learned", "Lesson", "Manner"]

_AT_ONCE = 32  # pictures that a learner stores in one transaction
_LOOK_EVERY = 0.5  # seconds between two looks at what other processes did
_log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class Lesson:
    """A labelled picture as the learner sees it, and a small one to show, if any."""

    pixels: Pixels
    label: str
    thumbnail: bytes | None = None


@dataclass(frozen=True)
class Manner:
    """How a question wants to be answered, see `Siesta.predict_encoded`."""

    top: int = 5
    threshold: float | None = None
    error_rate: float | None = None


@dataclass(frozen=True)
class Learned:
    """Ids of stored samples, and the generation that they were learned with."""

    ids: list[int]
    generation: int


@dataclass(frozen=True)
class Answered:
    """Answers, and the generation that gave them."""

    predictions: list[Prediction]
    generation: int


@dataclass(eq=False)
class _Lessons:
    lessons: Sequence[Lesson]
    done: Future[Learned] = field(default_factory=Future)
    ids: list[int] = field(default_factory=list)


@dataclass(eq=False)
class _Questions:
    pictures: Sequence[Pixels]
    manner: Manner
    done: Future[Answered] = field(default_factory=Future)


@dataclass(eq=False)
class _Errand(Generic[T]):
    work: Callable[[Siesta], T]
    changes: bool
    done: Future[T] = field(default_factory=Future)


_Work: TypeAlias = _Lessons | _Questions | _Errand[Any]


class Desk:
    """Where requests meet the learner.

    Attributes:
        path: The learner's folder.
        image_size: Side of its pictures.
        revision: Another number whenever something has changed.
        generation: Of the weights in use.
        trouble: What keeps it from teaching, if anything does: its folder is gone, or it is damaged.
    """

    def __init__(self, path: Path, metrics: Metrics, *, durability: str = "process", thumbnails: bool = True) -> None:
        """Takes a learner's folder; `open` opens it.

        Args:
            path: Where it is.
            metrics: Told what was done.
            durability: What a lesson that was answered survives.
            thumbnails: Whether any are kept; if not, those that are there go.
        """
        self.path, self.image_size, self.revision, self.generation = path.absolute(), 0, 0, 0
        self.trouble: SiestaError | None = None
        self._metrics, self._durability, self._thumbnails = metrics, durability, thumbnails
        self._waiting: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._opened: Future[None] = Future()
        self._thread = Thread(target=self._run, name="desk", daemon=True)
        self._closed, self._version = False, 0

    def open(self) -> None:
        """Opens the learner in the desk's own thread; what keeps it from being opened is raised here."""
        self._thread.start()
        self._opened.result()

    def close(self) -> None:
        """Finishes what lies on the desk, and closes the learner."""
        self._closed = True
        self._waiting.put(None)
        self._thread.join()

    @property
    def ready(self) -> bool:
        """Whether it takes work."""
        return self._thread.is_alive() and not self._closed

    # -- the side of the requests ---------------------------------------------------------------------------------

    async def learn(self, lessons: Sequence[Lesson]) -> Learned:
        """Teaches pictures; returns when they are durable."""
        work = _Lessons(lessons)
        return await self._laid(work, work.done)

    async def predict(self, pictures: Sequence[Pixels], manner: Manner) -> Answered:
        """Answers for pictures."""
        work = _Questions(pictures, manner)
        return await self._laid(work, work.done)

    async def look(self, work: Callable[[Siesta], T]) -> T:
        """Runs what changes nothing, in the learner's thread."""
        errand = _Errand(work, changes=False)
        return await self._laid(errand, errand.done)

    async def change(self, work: Callable[[Siesta], T]) -> T:
        """Runs what changes something, in the learner's thread."""
        errand = _Errand(work, changes=True)
        return await self._laid(errand, errand.done)

    async def _laid(self, work: _Work, done: Future[T]) -> T:
        if not self.ready:
            raise Problem(503, "the service is closing: try again in a moment")
        self._waiting.put(work)
        return await asyncio.wrap_future(done)

    # -- the learner's side ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            learner = Siesta.open(self.path, durability=self._durability)
            if not self._thumbnails:
                learner.store.drop_thumbnails()
        except BaseException as error:
            self._opened.set_exception(error)
            return
        with learner:
            self.image_size, self.generation = learner.pipeline.image_size, learner.generation
            self._version = learner.store.version()
            self._opened.set_result(None)
            while (gathered := self._gather()) is not None:
                self._serve(learner, gathered)

    def _gather(self) -> list[_Work] | None:
        """All that lies on the desk, in order, as soon as something does; nothing after a while, None at the end."""
        gathered: list[_Work] = []
        with suppress(queue.Empty):
            work = self._waiting.get(timeout=_LOOK_EVERY)
            while work is not None:
                gathered.append(work)
                work = self._waiting.get_nowait()
            if not gathered:
                return None
            self._waiting.put(None)  # the end, to be met again when these are done
        return gathered

    def _serve(self, learner: Siesta, gathered: Iterable[_Work]) -> None:
        wanted = [work for work in gathered if work.done.set_running_or_notify_cancel()]
        self._teach(learner, [work for work in wanted if isinstance(work, _Lessons)])
        self._answer(learner, [work for work in wanted if isinstance(work, _Questions)])
        for work in wanted:
            if isinstance(work, _Errand):
                self._run_errand(learner, work)
        self._look_around(learner)

    def _teach(self, learner: Siesta, works: Sequence[_Lessons]) -> None:
        left = [(work, lesson) for work in works for lesson in work.lessons]
        while left:
            group, left = left[:_AT_ONCE], left[_AT_ONCE:]
            start = time.monotonic()
            try:
                with self._looked_after(learner):
                    pictures, labels = zip(*((lesson.pixels, lesson.label) for _, lesson in group), strict=True)
                    ids = learner.learn_many(pictures, labels)
            except Exception as error:
                failed = dict.fromkeys(work for work, _ in group)
                for work in failed:
                    work.done.set_exception(self._not_stored(error, len(work.ids)))
                left = [(work, lesson) for work, lesson in left if work not in failed]
                continue
            self._metrics.taught(len(group), time.monotonic() - start)
            self.revision += 1
            for (work, _), sample_id in zip(group, ids, strict=True):
                work.ids.append(sample_id)
                if len(work.ids) == len(work.lessons):
                    work.done.set_result(Learned(work.ids, learner.generation))
            self._keep_thumbnails(learner, zip(ids, (lesson for _, lesson in group), strict=True))

    def _not_stored(self, error: Exception, safe: int) -> Exception:
        """Pictures and labels were checked before they came here: what the learner refuses is its disk's fault."""
        if not isinstance(error, BadInput):
            return error
        return Problem(503, str(error).replace(str(self.path), self.path.name), safe=safe)

    def _keep_thumbnails(self, learner: Siesta, taught: Iterable[tuple[int, Lesson]]) -> None:
        """After the answer, for nobody shall wait for them; that they can get lost hurts nobody either."""
        pictures = {sample_id: lesson.thumbnail for sample_id, lesson in taught if lesson.thumbnail is not None}
        if pictures and self._thumbnails:
            try:
                with self._errors():
                    learner.store.keep_thumbnails(pictures)
            except SiestaError as error:
                _log.warning("no thumbnails were kept: %s", error)

    def _answer(self, learner: Siesta, works: Sequence[_Questions]) -> None:
        alike: dict[Manner, list[_Questions]] = defaultdict(list)
        for work in works:
            alike[work.manner].append(work)
        for manner, some in alike.items():
            pictures, start = [picture for work in some for picture in work.pictures], time.monotonic()
            try:
                with self._errors():
                    answers = iter(learner.predict_many(pictures, **vars(manner)))
            except Exception as error:
                for work in some:
                    work.done.set_exception(self._not_answered(error))
                continue
            self._metrics.answered(len(pictures), time.monotonic() - start)
            for work in some:
                own = [next(answers) for _ in work.pictures]
                work.done.set_result(Answered(own, learner.generation))

    def _not_answered(self, error: Exception) -> Exception:
        """Questions were checked before they came here: what the learner refuses is what it does not know yet."""
        asked_too_early = isinstance(error, BadInput) and not isinstance(error, DiskRefused)
        return Problem(409, str(error)) if asked_too_early else error

    def _run_errand(self, learner: Siesta, errand: _Errand[Any]) -> None:
        self.revision += errand.changes  # even if it fails: who knows how far it came
        try:
            with self._looked_after(learner) if errand.changes else self._errors():
                done = errand.work(learner)
        except Exception as error:
            errand.done.set_exception(error)
        else:
            errand.done.set_result(done)

    @contextmanager
    def _looked_after(self, learner: Siesta) -> Iterator[None]:
        """Around what changes something: what nobody would find again is not begun, and not acknowledged."""
        with self._errors():
            learner.store.check_place()
            yield
            learner.store.check_place()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Says what SQLite stumbles over in words, and remembers damage: it does not go away."""
        try:
            with database_errors(self.path):
                yield
        except Damaged as error:
            self.trouble = error
            raise

    def _look_around(self, learner: Siesta) -> None:
        """Notices what other processes did: slept, went back to other weights, or took the folder away."""
        try:
            with database_errors(self.path):
                learner.store.check_place()
                version, generation = learner.store.version(), learner.store.generation()
        except SiestaError as error:  # whoever asks next is told
            if str(error) != str(self.trouble):  # once, not twice a second
                _log.warning("%s", error)
            self.trouble = error
            return
        if not isinstance(self.trouble, Damaged):
            self.trouble = None
        if (version, generation) != (self._version, self.generation):
            self._version, self.generation = version, generation
            self.revision += 1
