"""The execution of an experiment: a generator of result rows that can be killed and started again at any moment.

For each step of a stream, a method learns the step's samples, predicts the test samples of all classes seen so far,
sleeps, and predicts them again. Rows are yielded as they are made; the predictions that they summarise are stored
beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from siesta.contracts import Ids, Method, Progress, Resources
from siesta.data import Dataset
from siesta.errors import Damaged
from siesta.experiment.code_cache import CachedCodes, cached_codes
from siesta.experiment.initial_state import prepare_initial_state
from siesta.experiment.metrics import Predictions
from siesta.experiment.plan import PlannedRun
from siesta.experiment.predicted_labels import class_indices
from siesta.experiment.result_row import SCHEMA, validate_new_row, validate_resources
from siesta.experiment.run_folder import Row, RunFolder
from siesta.files import Lock, disk_errors
from siesta.pipeline import Pipeline
from siesta.provenance import provenance
from siesta.store import Store

__all__ = ["OnStatus", "RunStatus", "completed_steps", "experiment_lock", "run_all"]

_STORED_CLASSES = 5
_LEARN_CHUNK = 64
_PREDICT_CHUNK = 256


@dataclass(frozen=True)
class RunStatus:
    """The current activity of an experiment.

    Attributes:
        run: Name of the current run.
        activity: Description of what it is doing.
        fraction: How much of that is done (0..1).
    """

    run: str
    activity: str
    fraction: float


OnStatus = Callable[[RunStatus], None]


def run_all(runs: list[PlannedRun], dataset: Dataset, out: Path, on_status: OnStatus | None = None) -> Iterator[Row]:
    """Execute the runs that are not done yet; yield every row once it is safe on disk."""
    for planned in runs:
        folder = RunFolder(out / "runs" / planned.name, planned.identity)
        if not folder.done:
            yield from _Runner(planned, dataset, folder, out, on_status or (lambda _: None)).rows()


@contextmanager
def experiment_lock(out: Path) -> Iterator[None]:
    """Create the folder of an experiment and keep other processes from running in it."""
    with disk_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        lock = Lock(out / "lock", lambda pid: f"{out} is being written by process {pid}: wait for it or stop it")
    try:
        yield
    finally:
        lock.release()


def completed_steps(planned: PlannedRun, out: Path) -> int:
    """Return how many steps of a run are complete, without changing anything on disk."""
    path = out / "runs" / planned.name
    if not path.exists():
        return 0
    folder = RunFolder(path, planned.identity)
    return len(planned.stream.ends) if folder.done else folder.last_step + 1


@contextmanager
def _suggest_removal(path: Path) -> Iterator[None]:
    """Replace the remedy of a `Damaged` error: a learner in an experiment is rebuilt, not restored from a copy."""
    try:
        yield
    except Damaged as error:
        raise Damaged(f"{str(error).partition(': ')[0]}: remove {path} to build it again") from error


class _Runner:
    """Executes one run."""

    def __init__(
        self, planned: PlannedRun, dataset: Dataset, folder: RunFolder, out: Path, on_status: OnStatus
    ) -> None:
        self._planned = planned
        self._dataset = dataset
        self._folder = folder
        self._on_status = on_status
        self._initial_state = prepare_initial_state(planned, dataset, out, self._report)
        with _suggest_removal(self._initial_state), closing(Store.open(self._initial_state, "read")) as store:
            pipeline = Pipeline.from_store(store)
            self._train = self._codes("train", pipeline)
            self._test = self._codes("test", pipeline)
        self._class_index = {label: index for index, label in enumerate(dataset.classes)}
        self._evaluated_samples = 0
        self._base = planned.stream.ends[0] if planned.stream.base and planned.method.base is not None else 0

    def _report(self, activity: str, fraction: float) -> None:
        self._on_status(RunStatus(self._planned.name, activity, fraction))

    def _codes(self, name: str, pipeline: Pipeline) -> CachedCodes:
        split = getattr(self._dataset, name)
        return cached_codes(split, pipeline, lambda done, total: self._report(f"encoding {name} images", done / total))

    def rows(self) -> Iterator[Row]:
        """Execute the steps that no checkpoint covers; yield their rows."""
        self._folder.begin(self._initial_state)
        self._evaluated_samples = sum(row["n"] for row in self._folder.rows())
        with _suggest_removal(self._folder.path):
            method = self._planned.spec.make(self._folder.work, self._planned.method.settings, self._planned.seed)
        with closing(method):
            self._resources(method)  # a method that cannot finish fails before hours of training
            for number, indices in enumerate(self._planned.stream.steps()):
                if number > self._folder.last_step:
                    yield from self._step(method, number, indices)
        self._folder.finish()

    def _step(self, method: Method, number: int, indices: Ids) -> Iterator[Row]:
        if number or not self._base:  # base initialisation has learned the base step already
            self._learn(method, number, indices)
            if self._planned.spec.sleeps:
                yield self._evaluate(method, number, "before")
            method.sleep(lambda progress: self._report_sleep(number, progress))
        yield self._evaluate(method, number, "after")
        method.save()
        self._folder.checkpoint(number)

    def _learn(self, method: Method, number: int, indices: Ids) -> None:
        for first in range(0, len(indices), _LEARN_CHUNK):
            chunk = indices[first : first + _LEARN_CHUNK]
            method.learn_many(self._train.codes[chunk], self._labels(chunk))
            self._report(f"step {number + 1}: learning", (first + len(chunk)) / len(indices))

    def _labels(self, indices: Ids) -> list[str]:
        return [self._dataset.classes[row] for row in self._dataset.train.labels[indices]]

    def _report_sleep(self, number: int, progress: Progress) -> None:
        speed = f"loss {progress.loss:.3f}, {progress.updates_per_second:.0f} updates/s"
        self._report(f"step {number + 1}: asleep, {speed}", progress.fraction)

    def _evaluate(self, method: Method, number: int, phase: str) -> Row:
        """Predict all test samples of the classes seen so far; store the predictions and the row."""
        end = self._planned.stream.ends[number]
        begin = self._planned.stream.ends[number - 1] if number else 0
        labels = self._dataset.train.labels[self._planned.stream.indices]
        seen = np.unique(labels[:end])
        new = np.setdiff1d(seen, labels[:begin]).astype(np.int32)
        samples = np.flatnonzero(np.isin(self._dataset.test.labels, seen))
        truth = self._dataset.test.labels[samples].astype(np.int32)
        top = self._predict(method, number, samples)
        self._evaluated_samples += len(samples)
        predictions = Predictions(top, truth)
        row = self._row(method, number, phase, end) | {
            "n": len(samples),
            "classes": len(seen),
            "top1": predictions.accuracy(1),
            "top5": predictions.accuracy(5),
        }
        validate_new_row(row)
        self._folder.add(row, {"samples": samples.astype(np.int32), "truth": truth, "top": top, "new_classes": new})
        return row

    def _predict(self, method: Method, number: int, samples: Ids) -> npt.NDArray[np.int32]:
        """Return the best five classes of test samples, (N, 5), see `class_indices`."""
        top = np.empty((len(samples), _STORED_CLASSES), dtype=np.int32)
        for first in range(0, len(samples), _PREDICT_CHUNK):
            chunk = samples[first : first + _PREDICT_CHUNK]
            predicted = method.predict_many(self._test.codes[chunk], _STORED_CLASSES)
            shape = len(chunk), _STORED_CLASSES
            top[first : first + len(chunk)] = class_indices(
                self._planned.method.name, predicted, shape, self._class_index
            )
            self._report(f"step {number + 1}: evaluating", (first + len(chunk)) / len(samples))
        return top

    def _resources(self, method: Method) -> Resources:
        return validate_resources(self._planned.method.name, method.resources())

    def _row(self, method: Method, number: int, phase: str, end: int) -> Row:
        """Return the row except for its accuracies."""
        planned = self._planned
        resources = self._resources(method)
        return {
            "schema": SCHEMA,
            "experiment": planned.config.name,
            "run": planned.name,
            "config": planned.identity,
            "command": planned.command,
            "data": planned.config.data.model_dump(mode="json", exclude={"path"}),
            "method": planned.method.name,
            "kind": planned.method.kind,
            "settings": planned.method.settings.model_dump(mode="json", by_alias=True),
            "seed": planned.seed,
            "order": {"name": planned.order.name, "hash": planned.stream.hash},
            "step": number,
            "phase": phase,
            "updates": resources.updates,
            "parameters": resources.parameters,
            "bytes": dict(resources.bytes),
            "flops": dict(resources.flops),
            "seconds": self._seconds(resources.seconds, end),
            **provenance(),
        }

    def _seconds(self, measured: Mapping[str, float], end: int) -> dict[str, float]:
        """Return seconds by phase including those of the bottom and the encoder, also if the codes were cached."""
        encoding = {
            "wake": self._train.seconds * (end - self._base),
            "inference": self._test.seconds * self._evaluated_samples,
        }
        return dict(measured) | {
            phase: round(measured.get(phase, 0.0) + seconds, 3) for phase, seconds in encoding.items()
        }
