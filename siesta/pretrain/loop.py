"""The training loop of every pre-training method; interrupted and resumed, it computes the same run."""

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
from siesta.malloc import keep_freed_memory
from siesta.pretrain import distributed
from siesta.pretrain.collapse import collapse_indicators, collapse_warning
from siesta.pretrain.contract import PretrainOutput, TrainingRecipe, Views
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.knn import KnnPictures, knn_accuracy
from siesta.pretrain.larc import Larc
from siesta.pretrain.loader import CropLoader
from siesta.pretrain.progress import TrainingProgress, stop_on_signal
from siesta.sleep.resume import load_run, save_run

__all__ = [
    "CHECKPOINT_SECONDS",
    "EpochRecord",
    "OnStep",
    "PretrainRun",
    "PretrainStatus",
    "divergence_message",
    "train",
]

CHECKPOINT_SECONDS = 300.0
"""Time between two checkpoints of a run."""


@dataclass(frozen=True)
class PretrainStatus:
    """State of a run after a step, for display."""

    epoch: float
    fraction: float
    loss: float
    pictures: int
    pictures_per_second: float
    seconds_left: float
    warning: str | None


OnStep = Callable[[PretrainStatus], None]


@dataclass(frozen=True)
class EpochRecord:
    """What is recorded of an epoch, or of the part of it that was done; its fields are keys of the record file.

    Attributes:
        epoch: Epochs done by its end; 0 is the network before its first step.
        loss: Mean over its steps.
        knn: k-NN accuracy at its end in per cent, where it was measured.
        watched: Means of the collapse indicators.
    """

    epoch: float
    loss: float | None = None
    knn: float | None = None
    watched: dict[str, float] = field(default_factory=dict)


@dataclass
class PretrainRun:
    """Everything that a run consists of.

    Attributes:
        method: The module that is trained.
        encoder: The part of it that is kept.
        optimizer: Optimizer over the method's parameters.
        recipe: Learning-rate schedule.
        lr: Highest learning rate.
        loader: Source of batches.
        progress: Steps and seconds done.
        settings: Identity of the run; a checkpoint with another one is refused.
        checkpoint: File that keeps the run until it is done.
        knn_pictures: Images to measure k-NN accuracy on, if any.
        knn_every: Epochs between two such measurements.
        history: One record for each epoch.
    """

    method: nn.Module
    encoder: Encoder
    optimizer: Larc
    recipe: TrainingRecipe
    lr: float
    loader: CropLoader
    progress: TrainingProgress
    settings: dict[str, Any]
    checkpoint: Path
    knn_pictures: KnnPictures | None = None
    knn_every: int = 1
    history: list[EpochRecord] = field(default_factory=list)

    def save(self, current: _EpochSums) -> None:
        """Write the checkpoint on one rank; the others wait for it."""
        if distributed.rank() == 0:
            state = {
                "settings": self.settings,
                "step": self.progress.step,
                "seconds": self.progress.seconds,
                "history": [asdict(epoch) for epoch in self.history],
                "current": asdict(current),
            }
            save_run(self.checkpoint, self.method, self.optimizer, state)
        distributed.barrier()

    def resume(self) -> _EpochSums:
        """Load the checkpoint, if there is one, and return the sums of the unfinished epoch."""
        if not self.checkpoint.exists():
            return _EpochSums()
        state, _ = load_run(self.checkpoint, self.method, self.optimizer, self.settings)
        self.progress.step = state["step"]
        self.progress.seconds = state["seconds"]
        self.history = [EpochRecord(**epoch) for epoch in state["history"]]
        return _EpochSums(**state["current"])


@dataclass
class _EpochSums:
    """Sums over the steps of an unfinished epoch; its fields are keys of the checkpoint."""

    steps: int = 0
    loss: float = 0.0
    watched: dict[str, float] = field(default_factory=dict)

    def add(self, loss: float, indicators: dict[str, float]) -> None:
        self.steps += 1
        self.loss += loss
        self.watched = {name: self.watched.get(name, 0.0) + value for name, value in indicators.items()}

    def record(self, epoch: float) -> EpochRecord:
        means = {name: value / self.steps for name, value in self.watched.items()}
        return EpochRecord(epoch, self.loss / self.steps, None, means)


@keep_freed_memory()
def train(run: PretrainRun, on_step: OnStep | None = None) -> bool:
    """Train until the run is done; return False if a signal stopped it before, with its state in the checkpoint."""
    sums = run.resume()
    run.method.train()
    model = distributed.wrap_ddp(run.method)
    if not run.history:
        run.history.append(_with_knn(run, EpochRecord(0.0)))
    progress, saved_at = run.progress, time.monotonic()
    if not progress.step:
        run.save(sums)  # reports a full disk before hours of training
    with stop_on_signal() as stop_requested, contextlib.closing(run.loader.prefetch(progress.step)) as batches:
        while not progress.done:
            start = time.monotonic()
            loss, indicators = _step(run, model, next(batches))
            progress.advance(time.monotonic() - start)
            sums.add(loss, indicators)
            if on_step is not None:
                on_step(_status(run, loss, indicators))
            if progress.step % run.loader.epoch_steps == 0 or progress.done:
                run.history.append(_with_knn(run, sums.record(progress.step / run.loader.epoch_steps)))
                sums = _EpochSums()
            stop = stop_requested()
            due = distributed.all_reduce_mean(time.monotonic() - saved_at) > CHECKPOINT_SECONDS
            if stop or progress.done or due:
                run.save(sums)
                saved_at = time.monotonic()
            if stop and not progress.done:
                return False
    return True


def divergence_message(checkpoint: Path) -> str:
    """Return the error message for a loss or weights that are not finite."""
    return f"the training diverged: remove {checkpoint} and use a lower learning rate"


def _step(run: PretrainRun, model: nn.Module, views: Views) -> tuple[float, dict[str, float]]:
    """Take one step; return the loss over all ranks and the collapse indicators, both from before it."""
    fraction, device = run.progress.fraction, run.encoder.mean.device
    output: PretrainOutput = model(Views([crop.to(device) for crop in views.crops], views.labels.to(device)), fraction)
    loss = distributed.all_reduce_mean(float(output.loss.detach()))
    if not math.isfinite(loss):
        raise BadInput(divergence_message(run.checkpoint))
    run.optimizer.zero_grad(set_to_none=True)
    output.loss.backward()  # type: ignore[no-untyped-call]
    run.optimizer.prepare(run.lr * run.recipe.lr_factor(fraction), fraction)
    run.optimizer.step()
    return loss, collapse_indicators(output)


def _with_knn(run: PretrainRun, epoch: EpochRecord) -> EpochRecord:
    """Return the record with the k-NN accuracy of the encoder, if it is due."""
    due = round(epoch.epoch) % run.knn_every == 0 or run.progress.done
    if run.knn_pictures is None or not due:
        return epoch
    return replace(epoch, knn=knn_accuracy(run.encoder, run.knn_pictures))


def _status(run: PretrainRun, loss: float, indicators: dict[str, float]) -> PretrainStatus:
    progress = run.progress
    pictures = progress.step * run.loader.batch_size
    return PretrainStatus(
        epoch=progress.step / run.loader.epoch_steps,
        fraction=progress.fraction,
        loss=loss,
        pictures=pictures,
        pictures_per_second=pictures / max(progress.seconds, 1e-9),
        seconds_left=progress.seconds_left,
        warning=collapse_warning(indicators),
    )
