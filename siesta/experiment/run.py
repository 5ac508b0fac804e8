"""Runs an experiment: a generator of result rows, safe to kill and start again at any moment.

For each step of a stream a method learns its samples, answers the test samples of all classes seen so far, sleeps,
and answers again. Rows come as they are made; what they sum up, every single answer, is kept beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.contracts import Codes, Ids, Method, Progress
from siesta.data import Dataset
from siesta.errors import Damaged
from siesta.experiment.codes import Coded, coded
from siesta.experiment.metrics import Predictions
from siesta.experiment.plan import PlannedRun
from siesta.experiment.result_row import SCHEMA
from siesta.experiment.run_folder import RunFolder
from siesta.experiment.start import start_for
from siesta.pipeline import Pipeline
from siesta.provenance import provenance
from siesta.store import Store
from siesta.store.files import Lock, disk_errors

__all__ = ["OnStage", "Stage", "locked", "run_all", "steps_done"]

_TOP = 5
_LEARNED_AT_ONCE = 64
_ASKED_AT_ONCE = 256


@dataclass(frozen=True)
class Stage:
    """Where an experiment stands: which run, what it is doing, and how much of that is done (0..1)."""

    run: str
    words: str
    fraction: float


OnStage = Callable[[Stage], None]
Row = dict[str, Any]


def run_all(runs: list[PlannedRun], dataset: Dataset, out: Path, on_stage: OnStage | None = None) -> Iterator[Row]:
    """Runs what is planned and not done yet; yields every row when it is safe on disk."""
    for planned in runs:
        folder = RunFolder(out / "runs" / planned.name, planned.identity)
        if not folder.done:
            yield from _Run(planned, dataset, folder, out, on_stage or (lambda _: None)).rows()


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Makes the folder of an experiment, and keeps other processes from running in it."""
    with disk_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        lock = Lock(out / "lock", lambda pid: f"{out} is being written by process {pid}: wait for it or stop it")
    try:
        yield
    finally:
        lock.release()


def steps_done(planned: PlannedRun, out: Path) -> int:
    """How many steps of a run need not be run again; nothing is touched."""
    path = out / "runs" / planned.name
    if not path.exists():
        return 0
    folder = RunFolder(path, planned.identity)
    return len(planned.stream.ends) if folder.done else folder.last_step + 1


@contextmanager
def _made_anew(path: Path) -> Iterator[None]:
    """A damaged learner is restored from a copy by its owner; in an experiment it is better made again."""
    try:
        yield
    except Damaged as error:
        raise Damaged(f"{str(error).partition(': ')[0]}: remove {path} to make it anew") from error


class _Run:
    """One run on its way."""

    def __init__(self, planned: PlannedRun, dataset: Dataset, folder: RunFolder, out: Path, on_stage: OnStage) -> None:
        self._planned, self._dataset, self._folder, self._on_stage = planned, dataset, folder, on_stage
        self._start = start_for(planned, dataset, out, self._say)
        with _made_anew(self._start), closing(Store.open(self._start, "read")) as store:
            pipeline = Pipeline.of(store)
            self._train = self._coded("train", pipeline)
            self._test = self._coded("test", pipeline)
        self._asked = 0
        self._base = planned.stream.ends[0] if planned.stream.base and planned.method.base is not None else 0

    def _say(self, words: str, fraction: float) -> None:
        self._on_stage(Stage(self._planned.name, words, fraction))

    def _coded(self, split: str, pipeline: Pipeline) -> Coded:
        pictures = getattr(self._dataset, split)
        return coded(pictures, pipeline, lambda done, total: self._say(f"coding {split} pictures", done / total))

    def rows(self) -> Iterator[Row]:
        """Goes through the steps that no checkpoint covers."""
        self._folder.begin(self._start)
        self._asked = sum(row["n"] for row in self._folder.rows())
        with _made_anew(self._folder.path):
            method = self._planned.kind.make(self._folder.work, self._planned.method.settings, self._planned.seed)
        with closing(method):
            for number, indices in enumerate(self._planned.stream.steps()):
                if number > self._folder.last_step:
                    yield from self._step(method, number, indices)
        self._folder.finish()

    def _step(self, method: Method, number: int, indices: Ids) -> Iterator[Row]:
        if number or not self._base:  # the base step was learned before the method began
            self._learn(method, number, indices)
            if self._planned.kind.sleeps:
                yield self._evaluated(method, number, "before")
            method.sleep(lambda progress: self._asleep(number, progress))
        yield self._evaluated(method, number, "after")
        method.save()
        self._folder.checkpoint(number)

    def _learn(self, method: Method, number: int, indices: Ids) -> None:
        for first in range(0, len(indices), _LEARNED_AT_ONCE):
            some = indices[first : first + _LEARNED_AT_ONCE]
            method.learn_many(self._train.codes[some], self._labels(some))
            self._say(f"step {number + 1}: learning", (first + len(some)) / len(indices))

    def _labels(self, indices: Ids) -> list[str]:
        return [self._dataset.classes[row] for row in self._dataset.train.labels[indices]]

    def _asleep(self, number: int, progress: Progress) -> None:
        words = f"step {number + 1}: asleep, loss {progress.loss:.3f}, {progress.updates_per_second:.0f} updates/s"
        self._say(words, progress.fraction)

    def _evaluated(self, method: Method, number: int, phase: str) -> Row:
        """Asks about all test samples of the classes seen so far; keeps the answers and the row."""
        end = self._planned.stream.ends[number]
        begin = self._planned.stream.ends[number - 1] if number else 0
        labels = self._dataset.train.labels[self._planned.stream.indices]
        seen, old = np.unique(labels[:end]), np.unique(labels[:begin])
        samples = np.flatnonzero(np.isin(self._dataset.test.labels, seen))
        top = self._ask(method, number, samples)
        truth = self._dataset.test.labels[samples].astype(np.int32)
        self._asked += len(samples)
        row = self._row(method, number, phase, end) | {
            "n": len(samples),
            "classes": len(seen),
            "top1": Predictions(top, truth).accuracy(1),
            "top5": Predictions(top, truth).accuracy(5),
        }
        new = np.setdiff1d(seen, old).astype(np.int32)
        self._folder.add(row, {"samples": samples.astype(np.int32), "truth": truth, "top": top, "new_classes": new})
        return row

    def _ask(self, method: Method, number: int, samples: Ids) -> npt.NDArray[np.int32]:
        """The best five classes of test samples, (N, 5), -1 where there are fewer."""
        row_of = {label: row for row, label in enumerate(self._dataset.classes)}
        answers = np.full((len(samples), _TOP), -1, dtype=np.int32)
        for first in range(0, len(samples), _ASKED_AT_ONCE):
            some = samples[first : first + _ASKED_AT_ONCE]
            codes: Codes = self._test.codes[some]
            for place, best in enumerate(method.predict_many(codes, _TOP), start=first):
                answers[place, : len(best)] = [row_of[label] for label in best]
            self._say(f"step {number + 1}: answering", (first + len(some)) / len(samples))
        return answers

    def _row(self, method: Method, number: int, phase: str, end: int) -> Row:
        """All of a row but the answers; seconds awake include the bottom's, wherever the codes came from."""
        planned, resources = self._planned, method.resources()
        seconds = dict(resources.seconds)
        for name, coding in (
            ("wake", self._train.seconds * (end - self._base)),
            ("inference", self._test.seconds * self._asked),
        ):
            seconds[name] = round(seconds.get(name, 0.0) + coding, 3)
        return {
            "schema": SCHEMA,
            "experiment": planned.config.name,
            "run": planned.name,
            "config": planned.identity,
            "command": planned.command,
            "data": planned.config.data.model_dump(mode="json", exclude={"path"}),
            "method": planned.method.name,
            "kind": planned.method.kind,
            "settings": planned.method.settings.model_dump(mode="json"),
            "seed": planned.seed,
            "order": {"name": planned.order.name, "hash": planned.stream.hash},
            "step": number,
            "phase": phase,
            "updates": resources.updates,
            "parameters": resources.parameters,
            "bytes": dict(resources.bytes),
            "flops": dict(resources.flops),
            "seconds": seconds,
            **provenance(),
        }
