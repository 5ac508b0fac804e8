"""THE training loop of every method: batches in, a better encoder out; interrupted and resumed it is the same run."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import nn

from siesta.errors import BadInput
from siesta.halfway import load_run, save_run
from siesta.heap import freed_memory_kept
from siesta.pretrain import ranks
from siesta.pretrain.contract import Outcome, Training, Views
from siesta.pretrain.course import Course, stoppable
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.knn import Questions, knn_accuracy
from siesta.pretrain.larc import Larc
from siesta.pretrain.loader import Loader
from siesta.pretrain.watch import collapse, watched

__all__ = ["Epoch", "Job", "OnStep", "Standing", "diverged", "train"]

_SAVED_EVERY = 300.0  # seconds


@dataclass(frozen=True)
class Standing:
    """Where a run stands after a step."""

    epoch: float
    fraction: float
    loss: float
    pictures: int
    pictures_per_second: float
    seconds_left: float
    warning: str | None


OnStep = Callable[[Standing], None]


@dataclass(frozen=True)
class Epoch:
    """What is kept of an epoch, or of its part that was done.

    Attributes:
        epoch: Epochs done by its end; 0 is the network before its first step.
        loss: Mean over its steps.
        knn: k-NN accuracy at its end, in per cent, where it was asked for.
        watched: Means of what is watched for collapse.
    """

    epoch: float
    loss: float | None = None
    knn: float | None = None
    watched: dict[str, float] = field(default_factory=dict)


@dataclass
class Job:
    """All that a run consists of.

    Attributes:
        method: The module that learns.
        encoder: The part of it that is kept.
        optimizer: Made of the method's parts.
        training: How the rate runs.
        rate: The highest.
        loader: Where batches come from.
        course: How far it has come.
        settings: What it was started with; a checkpoint of others is not resumed.
        checkpoint: Where it is kept while it is not done.
        questions: What k-NN is asked about, if anything.
        knn_every: Epochs between two times.
        history: Epoch by epoch.
    """

    method: nn.Module
    encoder: Encoder
    optimizer: Larc
    training: Training
    rate: float
    loader: Loader
    course: Course
    settings: dict[str, Any]
    checkpoint: Path
    questions: Questions | None = None
    knn_every: int = 1
    history: list[Epoch] = field(default_factory=list)

    def save(self, current: _Sums) -> None:
        """Writes the checkpoint, on one rank."""
        if ranks.rank() == 0:
            state = {
                "settings": self.settings,
                "step": self.course.step,
                "seconds": self.course.seconds,
                "history": [asdict(epoch) for epoch in self.history],
                "current": asdict(current),
            }
            save_run(self.checkpoint, self.method, self.optimizer, state)
        ranks.wait()

    def resume(self) -> _Sums:
        """Goes on from the checkpoint, if there is one; returns the sums of the epoch that was under way."""
        if not self.checkpoint.exists():
            return _Sums()
        state, _ = load_run(self.checkpoint, self.method, self.optimizer, self.settings)
        self.course.step, self.course.seconds = state["step"], state["seconds"]
        self.history = [Epoch(**epoch) for epoch in state["history"]]
        return _Sums(**state["current"])


@dataclass
class _Sums:
    """Of an epoch under way."""

    steps: int = 0
    loss: float = 0.0
    watched: dict[str, float] = field(default_factory=dict)

    def add(self, loss: float, found: dict[str, float]) -> None:
        self.steps += 1
        self.loss += loss
        self.watched = {name: self.watched.get(name, 0.0) + value for name, value in found.items()}

    def epoch(self, number: float) -> Epoch:
        means = {name: value / self.steps for name, value in self.watched.items()}
        return Epoch(number, self.loss / self.steps, None, means)


@freed_memory_kept()
def train(job: Job, on_step: OnStep | None = None) -> bool:
    """Trains until the course is over; False when it was stopped before, with all of it in the checkpoint."""
    sums = job.resume()
    job.method.train()
    model = ranks.together(job.method)
    if not job.history:
        job.history.append(_asked(job, Epoch(0.0)))
    course, saved = job.course, time.monotonic()
    if not course.step:
        job.save(sums)  # a disk that is full says so now
    with stoppable() as stopped, contextlib.closing(job.loader.ahead(course.step)) as batches:
        while not course.over:
            start = time.monotonic()
            loss, found = _step(job, model, next(batches))
            course.tick(time.monotonic() - start)
            sums.add(loss, found)
            if on_step is not None:
                on_step(_standing(job, loss, found))
            if course.step % job.loader.epoch_steps == 0 or course.over:
                job.history.append(_asked(job, sums.epoch(course.step / job.loader.epoch_steps)))
                sums = _Sums()
            stop = stopped()
            if stop or course.over or ranks.mean(time.monotonic() - saved) > _SAVED_EVERY:
                job.save(sums)
                saved = time.monotonic()
            if stop and not course.over:
                return False
    return True


def diverged(checkpoint: Path) -> str:
    """What to do then."""
    return f"the training diverged: remove {checkpoint} and use a lower learning rate"


def _step(job: Job, model: nn.Module, views: Views) -> tuple[float, dict[str, float]]:
    """One step; returns its loss over all ranks and what is watched, both before it."""
    fraction, device = job.course.fraction, job.encoder.mean.device
    outcome: Outcome = model(Views([crop.to(device) for crop in views.crops], views.labels.to(device)), fraction)
    loss = ranks.mean(float(outcome.loss.detach()))
    if not math.isfinite(loss):
        raise BadInput(diverged(job.checkpoint))
    job.optimizer.zero_grad(set_to_none=True)
    outcome.loss.backward()  # type: ignore[no-untyped-call]
    job.optimizer.prepare(job.rate * job.training.share(fraction), fraction)
    job.optimizer.step()
    return loss, watched(outcome)


def _asked(job: Job, epoch: Epoch) -> Epoch:
    """The epoch with its k-NN accuracy, where it is time for that."""
    due = round(epoch.epoch) % job.knn_every == 0 or job.course.over
    if job.questions is None or not due:
        return epoch
    return replace(epoch, knn=knn_accuracy(job.encoder, job.questions))


def _standing(job: Job, loss: float, found: dict[str, float]) -> Standing:
    course, batch = job.course, job.loader.batch_size
    pictures = course.step * batch
    return Standing(
        epoch=course.step / job.loader.epoch_steps,
        fraction=course.fraction,
        loss=loss,
        pictures=pictures,
        pictures_per_second=pictures / max(course.seconds, 1e-9),
        seconds_left=course.left,
        warning=collapse(found),
    )
