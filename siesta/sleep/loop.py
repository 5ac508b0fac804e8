"""The training loop, the only one: latents of chosen samples in, a trained network out, within a budget.

The loop knows neither store nor codec: a `Samples` gives it latents for ids. `rehearse` trains a top and a head, and an
`Objective` says what is minimised, over which parameters, and whether batch norms follow the batches; `train` does so
for any network and output, a `Trainee`. All else in the top stays in eval mode; dropout is the loop's own, with a seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from siesta.contracts import Augmentation, Ids, Memory, OnProgress, Progress
from siesta.errors import BadInput
from siesta.head import Head
from siesta.malloc import keep_freed_memory
from siesta.rng import Purpose, generator
from siesta.sleep.batch import Batch, id_batches
from siesta.sleep.budget import Budget
from siesta.sleep.class_means import RunningClassMeans
from siesta.sleep.clock import Clock
from siesta.sleep.cosine_output import CosineOutput
from siesta.sleep.crop import random_crops
from siesta.sleep.objective import Loss, Objective, cross_entropy
from siesta.sleep.optimizers import make_optimizer, set_lr
from siesta.sleep.resume import TrainingCheckpoint, TrainingState
from siesta.sleep.schedule import Schedule, make_schedule
from siesta.sleep.settings import SleepSettings

__all__ = [
    "Load",
    "Pace",
    "Rehearsal",
    "Samples",
    "Trainee",
    "Training",
    "rehearse",
    "rows_of_samples",
    "train",
    "train_step",
]

_DIVERGED = "the sleep diverged and was discarded, the learner is unchanged: use a lower learning rate"

Load = Callable[[Ids], tuple[Ids, Tensor, Tensor]]
"""Ids (B,) -> those still stored (B',), their latents (B', d, r, s) or (B', N, d), and their head rows (B',)."""


def rows_of_samples(memory: Memory, head: Head) -> Callable[[Ids], Tensor]:
    """Return a function from sample ids (B,) to rows of the head (B,)."""
    order = np.argsort(memory.ids)
    sorted_ids = memory.ids[order]
    rows = np.searchsorted(head.class_ids, memory.classes[order])
    return lambda ids: torch.from_numpy(rows[np.searchsorted(sorted_ids, ids)])


@dataclass(frozen=True)
class Samples:
    """The samples to rehearse.

    Attributes:
        ids: Chunks of sample ids, without end, in rehearsal order.
        load: Function that loads latents.
        augment: Augmentation that mixes two batches into one; None mixes nothing.
    """

    ids: Iterator[Ids]
    load: Load
    augment: Augmentation | None = None

    @property
    def per_update(self) -> int:
        """Number of samples in an update; 2 for mixed pairs."""
        return 1 if self.augment is None else 2


@dataclass(frozen=True)
class Rehearsal:
    """The result of `rehearse`.

    Attributes:
        head: The consolidated head.
        updates: Backward passes of single samples; a mixed pair is one.
        sample_ids: Every id rehearsed, in order; both of a mixed pair.
        losses: Mean loss of each batch.
        interrupted: True when the loop ended before its budget did.
    """

    head: Head
    updates: int
    sample_ids: Ids
    losses: list[float]
    interrupted: bool


@dataclass(frozen=True)
class Pace:
    """How a training goes through its samples.

    Attributes:
        batch_size: Updates in a step.
        lr: The learning rate that progress reports a share of.
        schedule: The share of each group's maximum learning rate over the budget.
        seed: Of dropout, mixing and crops.
        dropout: Share of z that is dropped between top and output.
        crop: Least share of the area that a random crop of a latent keeps; 1 crops nothing.
    """

    batch_size: int
    lr: float
    schedule: Schedule
    seed: int
    dropout: float = 0.0
    crop: float = 1.0


@dataclass(frozen=True)
class Trainee:
    """What a training changes, in place.

    Attributes:
        top: Latents -> z, in eval mode.
        output: z -> logits.
        optimizer: Of the trained parameters of both; each group has a "max_lr".
        loss: What is minimised.
        live_norms: The batch norms of `top` that use and update the statistics of batches.
        means: Class means that follow the top; None where nothing needs them.
    """

    top: nn.Module
    output: nn.Module
    optimizer: torch.optim.Optimizer
    loss: Loss = cross_entropy
    live_norms: Sequence[nn.Module] = ()
    means: RunningClassMeans | None = None


@dataclass(frozen=True)
class Training:
    """The result of `train`.

    Attributes:
        updates: Backward passes of single samples; a mixed pair is one.
        sample_ids: Every id trained on, in order; both of a mixed pair.
        losses: Mean loss of each batch.
        interrupted: True when the loop ended before its budget did.
        latents: Those of the last batch, as they were loaded.
    """

    updates: int
    sample_ids: Ids
    losses: list[float]
    interrupted: bool
    latents: Tensor


@keep_freed_memory()
def train(
    trainee: Trainee,
    samples: Samples,
    budget: Budget,
    pace: Pace,
    on_progress: OnProgress | None = None,
    checkpoint: TrainingCheckpoint | None = None,
) -> Training:
    """Train any network with any output until the budget is spent.

    A KeyboardInterrupt, or `on_progress` returning True, ends the loop early with what was learned until then; with a
    checkpoint it raises KeyboardInterrupt, because the same call continues from there.

    Args:
        trainee: What is trained; its top is in eval mode afterwards.
        samples: What it is trained on.
        budget: When the loop ends.
        pace: Batch size, learning rate and seed.
        on_progress: Called after each batch.
        checkpoint: Where a training with an update budget is kept, to be continued by the same call after a kill or an
            interrupt.
    """
    return _Training(trainee, samples, budget, pace, checkpoint).run(on_progress)


def rehearse(
    top: nn.Sequential,
    head: Head,
    samples: Samples,
    budget: Budget,
    settings: SleepSettings,
    on_progress: OnProgress | None = None,
    checkpoint: TrainingCheckpoint | None = None,
    objective: Objective | None = None,
) -> Rehearsal:
    """Train `top` in place, and a copy of `head`, until the budget is spent; see `train`.

    Args:
        top: In any mode; it is in eval mode afterwards.
        head: With a row for every class of the samples.
        samples: What is rehearsed.
        budget: When the loop ends.
        settings: How it trains.
        on_progress: Called after each batch.
        checkpoint: Where the training is kept.
        objective: What it minimises; None minimises the cross-entropy and trains all but the statistics of batch norms.
    """
    objective = objective or Objective()
    device = next(top.parameters()).device
    top = objective.prepared(top)
    output = CosineOutput(head, device)
    objective.select(top, output)
    means = RunningClassMeans(head, device)
    optimizer = make_optimizer(top, output, settings)
    trainee = Trainee(top, output, optimizer, objective.loss, objective.live_norms(top), means)
    schedule = make_schedule(settings.schedule)
    pace = Pace(settings.batch_size, settings.lr, schedule, settings.seed, settings.dropout, settings.crop)
    training = train(trainee, samples, budget, pace, on_progress, checkpoint)
    with torch.no_grad():
        norm = float(top(training.latents).norm(dim=1).mean())
    vectors = means.blend(output.vectors.detach(), settings.mean_share).cpu().numpy()
    new_head = head.after_sleep(vectors, float(output.scale.detach()), norm)
    if not (new_head.is_finite() and all(torch.isfinite(tensor).all() for tensor in top.state_dict().values())):
        raise BadInput(_DIVERGED)
    return Rehearsal(new_head, training.updates, training.sample_ids, training.losses, training.interrupted)


@dataclass(frozen=True)
class _Step:
    sample_ids: Ids
    updates: int
    loss: float


class _Training:
    def __init__(
        self,
        trainee: Trainee,
        samples: Samples,
        budget: Budget,
        pace: Pace,
        checkpoint: TrainingCheckpoint | None,
    ) -> None:
        device = next(trainee.top.parameters()).device
        self._trainee = trainee
        self._samples = samples
        self._budget = budget
        self._pace = pace
        self._checkpoint = checkpoint
        self._clock = Clock(budget, pace.batch_size, pace.schedule)
        self._dropout_rng = torch.Generator(device).manual_seed(pace.seed)
        self._augment_rng = generator(pace.seed, Purpose.AUGMENTATION)
        self._crop_rng = generator(pace.seed, Purpose.CROPS)
        modules = nn.ModuleDict({"top": trainee.top, "output": trainee.output})
        totals = torch.zeros(0) if trainee.means is None else trainee.means.totals
        self._state = TrainingState(modules, trainee.optimizer, totals, self._dropout_rng)
        self._resumed_losses = [] if checkpoint is None else checkpoint.load(self._state)
        self._steps: list[_Step] = []
        self._latents: Tensor | None = None

    def run(self, on_progress: OnProgress | None) -> Training:
        per_update = self._samples.per_update
        total = None if self._budget.updates is None else per_update * self._budget.updates
        interrupted = False
        try:
            for ids in id_batches(self._samples.ids, per_update * self._pace.batch_size, total):
                progress = self._step(ids)
                if on_progress and on_progress(progress):
                    interrupted = not self._clock.is_over()
                    break
                if self._clock.is_over():
                    break
        except KeyboardInterrupt:
            interrupted = True
            if not self._steps:
                raise
        if interrupted and self._checkpoint is not None:
            raise KeyboardInterrupt("interrupted; the same call continues from a checkpoint")
        return self._result(interrupted)

    def _step(self, planned: Ids) -> Progress:
        """Rehearse one batch of ids; learn nothing where the checkpoint has done so already."""
        self._clock.start_batch()
        ids, self._latents, rows = self._samples.load(planned)
        if len(rows) == 0:
            raise BadInput("none of the chosen samples is stored any more: sleep again")
        lr_share = self._clock.lr_share()
        crops = random_crops(self._latents, self._pace.crop, self._crop_rng)
        batch = Batch.of(crops, rows, self._samples.augment, self._augment_rng)
        resumed = len(self._steps) < len(self._resumed_losses)
        loss = self._resumed_losses[len(self._steps)] if resumed else self._learn(batch, lr_share)
        self._steps.append(_Step(ids, len(batch.rows), loss))
        if self._checkpoint is not None and not resumed:
            self._checkpoint.save_if_due(self._state, (step.loss for step in self._steps))
        self._clock.end_batch(len(batch.rows), len(planned) // self._samples.per_update)
        return self._clock.progress(loss, self._pace.lr * lr_share)

    def _learn(self, batch: Batch, lr_share: float) -> float:
        trainee = self._trainee
        set_lr(trainee.optimizer, lr_share)
        for norm in trainee.live_norms:
            norm.train(len(batch.rows) > 1)  # a single sample has no statistics
        loss, features = train_step(
            trainee.top, trainee.output, trainee.optimizer, batch, self._pace.dropout, self._dropout_rng, trainee.loss
        )
        if not math.isfinite(loss):
            raise BadInput(_DIVERGED)
        if trainee.means is not None:
            trainee.means.add(features, batch, lr_share)
        return loss

    def _result(self, interrupted: bool) -> Training:
        self._trainee.top.eval()
        assert self._latents is not None
        return Training(
            updates=sum(step.updates for step in self._steps),
            sample_ids=np.concatenate([step.sample_ids for step in self._steps]),
            losses=[step.loss for step in self._steps],
            interrupted=interrupted,
            latents=self._latents,
        )


def train_step(
    top: nn.Module,
    output: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    dropout: float,
    rng: torch.Generator,
    loss: Loss = cross_entropy,
) -> tuple[float, Tensor]:
    """Take one step; return mean loss and z (B, D), both from before it.

    Args:
        top: Applied to the batch's latents.
        output: Applied to z.
        optimizer: Of both.
        batch: What to learn from.
        dropout: Share of z that is dropped.
        rng: Chooses which part of z is dropped.
        loss: What is minimised.
    """
    features = top(batch.latents)
    kept = torch.empty_like(features).bernoulli_(1 - dropout, generator=rng) / (1 - dropout)
    mean_loss = loss(batch, features, output(features * kept))
    optimizer.zero_grad(set_to_none=True)
    mean_loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return float(mean_loss.detach()), features.detach()
