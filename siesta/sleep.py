"""THE rehearsal loop, the only one: picked codes in, better top and head out, within a budget.

It knows neither store nor codec: `load` gives it latents for ids. The top stays in eval mode, so batch-norm
statistics are frozen (their affine parts learn) and dropout is this loop's own, seeded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.batch import Batch
from siesta.budget import Budget, Clock, make_schedule
from siesta.contracts import Augmentation, Ids, Memory, OnProgress, SleepDefaults
from siesta.errors import BadInput
from siesta.halfway import Halfway, Learning
from siesta.head import Head, cosine_logits
from siesta.heap import freed_memory_kept

__all__ = [
    "OPTIMIZERS",
    "CosineOutput",
    "Load",
    "Rehearsal",
    "SleepSettings",
    "batches",
    "check_seed",
    "layer_groups",
    "rehearse",
    "rows_of_samples",
    "train_step",
]

_LARGEST_BATCH = 65_536
_FADE = 0.03  # how much a step at the maximal rate fades what was seen before it
_DIVERGED = "the sleep diverged and was dropped, the learner is as before: use a lower learning rate"
_MIX = 3  # purpose number of the random stream that augmentation draws from

Load = Callable[[Ids], tuple[Ids, Tensor, Tensor]]
"""Ids (B,) -> those still stored (B',), their latents (B', d, r, s) and their head rows (B',)."""


def rows_of_samples(memory: Memory, head: Head) -> Callable[[Ids], Tensor]:
    """A function from sample ids (B,) to rows of the head (B,)."""
    order = np.argsort(memory.ids)
    ids, rows = memory.ids[order], np.searchsorted(head.class_ids.numpy(), memory.classes[order])
    return lambda wanted: torch.from_numpy(rows[np.searchsorted(ids, wanted)])


def check_seed(seed: int) -> None:
    """Refuses what the random generators would not take."""
    if not 0 <= seed < 2**63:
        raise BadInput(f"a seed lies in 0..2^63 - 1, not {seed}")


@dataclass(frozen=True)
class SleepSettings:
    """How a sleep trains; the paper's values unless the backbone has its own.

    `mean_share` says what a class vector is after the sleep: 0 the trained vector, as in the paper, 1 the mean of its
    class's z under the new top, between them a blend of the two directions. A class that arrives awake is a mean of
    z; purely trained vectors do not compare with it, and the old classes would lose to the new one.
    `schedule` is a name from `SCHEDULES`, `optimizer` one from `OPTIMIZERS`; AdamW takes `momentum` for its first beta.
    """

    rate: float
    layer_decay: float
    dropout: float
    batch_size: int = 64
    momentum: float = 0.9
    weight_decay: float = 1e-5
    mean_share: float = 0.5
    seed: int = 0
    schedule: str = "one_cycle"
    optimizer: str = "sgd"

    @classmethod
    def suited(
        cls, network: SleepDefaults, *, batch_size: int, rate: float | None, layer_decay: float | None, **others: Any
    ) -> SleepSettings:
        """The network's own values where None is given; its rate scales with the batch."""
        return cls(
            rate=network.rate * batch_size / 64 if rate is None else rate,
            layer_decay=network.layer_decay if layer_decay is None else layer_decay,
            dropout=network.dropout,
            batch_size=batch_size,
            **others,
        )

    def __post_init__(self) -> None:
        check_seed(self.seed)
        make_schedule(self.schedule)
        if self.optimizer not in OPTIMIZERS:
            raise BadInput(f"there is no optimizer '{self.optimizer}': choose one of {', '.join(OPTIMIZERS)}")
        if not 1 <= self.batch_size <= _LARGEST_BATCH:
            raise BadInput(f"a batch has 1 to {_LARGEST_BATCH:,} samples, not {self.batch_size}")
        if not (self.rate > 0 and math.isfinite(self.rate)):
            raise BadInput(f"a learning rate is above zero, not {self.rate}")
        for name, low, high in (
            ("layer_decay", 0, 1),
            ("momentum", 0, 1 if self.optimizer == "sgd" else 0.999),
            ("weight_decay", 0, 1),
            ("dropout", 0, 0.99),
        ):
            if not low <= getattr(self, name) <= high:
                raise BadInput(f"{name.replace('_', ' ')} lies in {low}..{high}, not {getattr(self, name)}")
        if not 0 <= self.mean_share <= 1:
            raise BadInput(f"a mean share lies in 0..1, not {self.mean_share}")


Groups = list[dict[str, object]]


def _sgd(groups: Groups, settings: SleepSettings) -> torch.optim.Optimizer:
    return torch.optim.SGD(groups, lr=0.0, momentum=settings.momentum, weight_decay=settings.weight_decay)


def _adamw(groups: Groups, settings: SleepSettings) -> torch.optim.Optimizer:
    betas = settings.momentum, 0.999
    return torch.optim.AdamW(groups, lr=0.0, betas=betas, weight_decay=settings.weight_decay)


OPTIMIZERS: dict[str, Callable[[Groups, SleepSettings], torch.optim.Optimizer]] = {"sgd": _sgd, "adamw": _adamw}


def layer_groups(top: nn.Sequential, output: CosineOutput, settings: SleepSettings) -> Groups:
    """Optimiser groups: the head at the full rate, each learning layer below at `layer_decay` times the one above."""
    groups: Groups = [
        {"params": [output.scale], "rate": settings.rate, "weight_decay": 0.0},
        {"params": [output.vectors], "rate": settings.rate},
    ]
    rate = settings.rate
    for layer in reversed(top):
        parameters = list(layer.parameters())
        if parameters:
            rate *= settings.layer_decay
            groups.append({"params": parameters, "rate": rate})
    return groups


def batches(picks: Iterator[Ids], size: int, total: int | None) -> Iterator[Ids]:
    """Cuts a policy's picks into batches: `total` ids in all, the last batch the rest; None goes on for ever."""
    ahead: Ids = np.zeros(0, dtype=np.int64)
    while total is None or total > 0:
        wanted = size if total is None else min(size, total)
        while len(ahead) < wanted:
            more = next(picks, None)
            if more is None:
                raise BadInput("the policy ran out of picks before the budget was spent: let it go on for ever")
            ahead = np.concatenate([ahead, more])
        batch, ahead = np.split(ahead, [wanted])
        total = None if total is None else total - wanted
        yield batch


class CosineOutput(nn.Module):
    """The head while it is trained: class vectors (K, D) and 1 / temperature as parameters.

    The vectors start with length one: the cosine does not care, and so their rate does not hang on the length of z.
    """

    def __init__(self, head: Head, device: torch.device) -> None:
        super().__init__()
        self.vectors = nn.Parameter(F.normalize(head.weights()).to(device))
        self.scale = nn.Parameter(torch.tensor(head.scale, dtype=torch.float32, device=device))

    def forward(self, features: Tensor) -> Tensor:
        """(B, D) -> logits (B, K)."""
        return cosine_logits(features, self.vectors, self.scale)


class Recollection:
    """Mean z of each class, kept up with the top that changes, on the way and at no cost.

    It starts from what the head knows: a class's vector, as many times as samples were taught. What is known fades
    with each step by how far that may have moved the top, and rehearsed z are added; so a short sleep corrects the
    means and a long one replaces them. Mixtures are nobody's z: only batches of which one part makes up 95 % or more
    count, as that part's.
    """

    def __init__(self, head: Head, device: torch.device) -> None:
        self.totals = (head.taught()[:, None] * head.weights()).to(device)

    def add(self, features: Tensor, batch: Batch, share: float) -> None:
        """Takes z (B, D) of a batch, seen just before a step at `share` of the maximal rate."""
        rows = batch.pure_rows()
        if rows is not None:
            self.totals.index_add_(0, rows, features)
        self.totals.mul_(1 - _FADE * share)

    def blend(self, vectors: Tensor, mean_share: float) -> Tensor:
        """Directions between trained vectors (K, D) and means."""
        return (1 - mean_share) * F.normalize(vectors) + mean_share * F.normalize(self.totals)


@dataclass(frozen=True)
class Rehearsal:
    """What came out of the loop.

    Attributes:
        head: The consolidated head.
        updates: Backward passes of single samples; a mixed pair is one.
        rehearsed: Every id rehearsed, in order; both of a mixed pair.
        losses: Mean loss of each batch.
        interrupted: True when it ended before its budget did.
    """

    head: Head
    updates: int
    rehearsed: Ids
    losses: list[float]
    interrupted: bool


@freed_memory_kept()
def rehearse(
    top: nn.Sequential,
    head: Head,
    picks: Iterator[Ids],
    load: Load,
    budget: Budget,
    settings: SleepSettings,
    on_progress: OnProgress | None = None,
    augment: Augmentation | None = None,
    halfway: Halfway | None = None,
) -> Rehearsal:
    """Trains `top` in place, and a copy of `head`, on the picked samples until the budget is spent.

    With `augment` a step takes two batches of picks and mixes them into one; a mixed pair is one update. A
    KeyboardInterrupt, or `on_progress` returning True, ends it early with what was learned so far. With `halfway` a
    budget of updates is resumed after a kill.
    """
    clock = Clock(budget, settings.batch_size, make_schedule(settings.schedule))
    top.eval()
    device = next(top.parameters()).device
    output = CosineOutput(head, device)
    optimizer = OPTIMIZERS[settings.optimizer](layer_groups(top, output, settings), settings)
    noise, mixing = torch.Generator(device).manual_seed(settings.seed), np.random.default_rng((settings.seed, _MIX))
    taken = 1 if augment is None else 2  # samples an update
    done: list[tuple[Ids, int, float]] = []  # ids, updates, loss
    recollection = Recollection(head, device)
    learning = Learning(nn.ModuleDict({"top": top, "output": output}), optimizer, recollection.totals, noise)
    learned = [] if halfway is None else halfway.load(learning)
    latents: Tensor | None = None
    interrupted = False
    try:
        for picked in batches(picks, taken * settings.batch_size, budget.updates and taken * budget.updates):
            clock.begin()
            ids, latents, rows = load(picked)
            if len(rows) == 0:
                raise BadInput("none of the picked samples is stored any more: sleep again")
            share = clock.share()
            for group in optimizer.param_groups:
                group["lr"] = group["rate"] * share
            batch = Batch.of(latents, rows, augment, mixing)
            if len(done) < len(learned):
                loss = learned[len(done)]
            else:
                loss, features = train_step(top, output, optimizer, batch, settings.dropout, noise)
                if not math.isfinite(loss):
                    raise BadInput(_DIVERGED)
                recollection.add(features, batch, share)
            done.append((ids, len(batch.rows), loss))
            if halfway is not None and len(done) > len(learned):
                halfway.note(learning, (loss for *_, loss in done))
            clock.tick(len(batch.rows), len(picked) // taken)
            if on_progress and on_progress(clock.progress(loss, settings.rate * share)):
                interrupted = not clock.over()
                break
            if clock.over():
                break
    except KeyboardInterrupt:
        interrupted = True
        if latents is None or not done:
            raise
    with torch.no_grad():
        norm = float(top(latents).norm(dim=1).mean())
    vectors = recollection.blend(output.vectors.detach(), settings.mean_share).cpu()
    consolidated = head.consolidated(vectors, float(output.scale.detach()), norm)
    if not (consolidated.is_finite() and all(torch.isfinite(weights).all() for weights in top.parameters())):
        raise BadInput(_DIVERGED)
    rehearsed, updates, losses = zip(*done, strict=True)
    return Rehearsal(consolidated, sum(updates), np.concatenate(rehearsed), list(losses), interrupted)


def train_step(
    top: nn.Sequential,
    output: CosineOutput,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    dropout: float,
    noise: torch.Generator,
) -> tuple[float, Tensor]:
    """One step; returns mean loss and z (B, D), both before it."""
    features = top(batch.latents)
    kept = torch.empty_like(features).bernoulli_(1 - dropout, generator=noise) / (1 - dropout)
    loss = batch.loss(output(features * kept))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return float(loss.detach()), features.detach()
