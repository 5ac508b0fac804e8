"""One sleep of a learner: from its memory to a new generation of weights in use."""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from siesta.backbones.arrays import state_arrays
from siesta.backbones.layers import channels_last
from siesta.contracts import Codes, Embedded, Ids, Memory, OnProgress
from siesta.errors import BadInput
from siesta.head import Discriminant, Head
from siesta.head.discriminant import discriminant_for
from siesta.pipeline import Pipeline
from siesta.rng import Purpose, generator
from siesta.sleep.budget import Budget
from siesta.sleep.counted_statistics import counted_anew
from siesta.sleep.delta_sums import DeltaSums
from siesta.sleep.held_out import HeldOutSamples
from siesta.sleep.held_out_roles import Evaluation, HeldOutRoles
from siesta.sleep.judge_folder import judge_samples
from siesta.sleep.loop import Rehearsal, Samples, rehearse, rows_of_samples
from siesta.sleep.options import SleepPlan
from siesta.sleep.report import SleepReport
from siesta.sleep.resume import TrainingCheckpoint
from siesta.sleep.round_limits import RoundLimits
from siesta.sleep.rounds import Rounds, rehearse_in_rounds
from siesta.store import Store

__all__ = ["Consolidation"]

_EMBEDDING_BATCH = 256
_MEASURING_SHARE = 0.1  # of a time budget, for held-out samples before the sleep, after it, and for new statistics
_SHORTEST = 0.001  # seconds
_COLUMNS = ("ids", "classes", "rehearsed", "new_classes")  # of a `Memory`


@dataclass
class Consolidation:
    """One sleep of a learner.

    Attributes:
        store: The learner's store, inside its `sleeping()`.
        pipeline: With the top in use; with the new top afterwards.
        head: The head in use, which knows all samples up to `newest`.
        classifier: What predicts with the weights in use: that head, or a discriminant.
        newest: Id of the newest sample that takes part; others may be taught meanwhile.
        plan: How to sleep.
        on_progress: Called after each batch.
        checkpoint: Where the training is kept, to be continued by the same sleep after a kill; for an update budget.
    """

    store: Store
    pipeline: Pipeline
    head: Head
    classifier: Head | Discriminant
    newest: int
    plan: SleepPlan
    on_progress: OnProgress | None = None
    checkpoint: TrainingCheckpoint | None = None
    _embedded: int = 0

    def run(self) -> SleepReport:
        """Train new weights, store them as a generation, and use it unless held-out accuracy fell too far.

        What was taught meanwhile is added to the class sums, as the new top sees it.
        """
        memory = self.store.samples.memory(self.newest)
        if not len(memory.ids):
            raise BadInput("no samples are stored: learn some first")
        if self.checkpoint is not None:
            self.checkpoint.identify(self._identity(memory))
        before, roles, budget = self._measure_before()
        old = copy.deepcopy(self.pipeline.backbone.top)
        top = channels_last(copy.deepcopy(old).to(self.pipeline.device))
        rounds = self._rehearse(memory, top, budget, roles.judges)
        result = rounds.rehearsal
        change = _relative_change(old, top)
        self.pipeline.load_top(state_arrays(top))
        statistics = counted_anew(self.store, self.pipeline, self.newest, self._measuring_seconds())
        classifier = result.head if statistics is None else discriminant_for(statistics.statistics, result.head)
        after, _ = roles.measure(self.store, self.pipeline, classifier)
        report = replace(
            self._report(memory, result, change, before, after),
            rounds=rounds.rounds,
            ended=rounds.ended,
            optimistic=roles.optimistic,
            judge=None if self.plan.judge is None else self.plan.judge.resolve().name,
        )
        tensors = {"top": state_arrays(top), "head": result.head.state()}
        number = self.store.generations.add(tensors, self.newest, report.as_dict())
        if report.used:
            sums = DeltaSums(self.pipeline.features, result.head, statistics)
            self.store.swap.activate(number, sums, result.sample_ids)
        return report

    def _identity(self, memory: Memory) -> dict[str, object]:
        """Return what the training depends on, as plain values: plan, weights, class means and stored samples."""
        if self.plan.budget.updates is None:
            kind = "without a budget" if self.plan.budget.is_open else "with a time budget"
            raise BadInput(f"a sleep {kind} cannot be continued after a kill: give it updates")
        return {
            **self.plan.as_dict(),
            "updates": self.plan.budget.updates,
            "codec": self.store.constants.codec_hash(),
            "top": _digest(self.pipeline.network.top),
            "head": _digest({**self.head.state(), "weights": self.head.weights(), "total": self.head.total_counts()}),
            "memory": _digest({name: getattr(memory, name) for name in _COLUMNS}),
        }

    def _held_out(self) -> HeldOutSamples:
        """Return the samples that judge the sleep."""
        seed = self.plan.settings.seed
        if self.plan.judge is None:
            return HeldOutSamples.choose(self.store, self.newest, seed)
        return judge_samples(self.plan.judge, self.store, self.pipeline, self.head.class_ids, seed)

    def _measure_before(self) -> tuple[Evaluation, HeldOutRoles, Budget]:
        """Return how the weights in use do, on the samples that there was time for, and the budget for the rehearsal.

        A time budget is shortened by the time that this took, because measuring again afterwards takes as long.
        """
        budget = self.plan.budget
        start = time.monotonic()
        roles = HeldOutRoles.of(self._held_out(), budget)
        if budget.seconds is None:
            return (*roles.measure(self.store, self.pipeline, self.classifier), budget)
        measured = roles.measure(self.store, self.pipeline, self.classifier, self._measuring_seconds())
        left = budget.seconds - (time.monotonic() - start)
        if self.classifier is not self.head:
            left -= _MEASURING_SHARE * budget.seconds  # for the new statistics
        return (*measured, replace(budget, seconds=max(left, _SHORTEST)))

    def _measuring_seconds(self) -> float | None:
        """Return how long each measurement outside of the training may take; None without a limit."""
        seconds = self.plan.budget.seconds
        return None if seconds is None else _MEASURING_SHARE * seconds

    def _rehearse(self, memory: Memory, top: nn.Sequential, budget: Budget, judges: HeldOutSamples | None) -> Rounds:
        rows = rows_of_samples(memory, self.head)

        def embed(ids: Ids) -> Iterator[Embedded]:
            for start in range(0, len(ids), _EMBEDDING_BATCH):
                batch = ids[start : start + _EMBEDDING_BATCH]
                stored, codes = self.store.samples.get(batch)
                self._embedded += len(codes)
                if len(codes):
                    yield self._embed(batch[stored], codes, rows(batch[stored]))

        def load(planned: Ids) -> tuple[Ids, Tensor, Tensor]:
            stored, codes = self.store.samples.get(planned)
            ids = planned[stored]
            return ids, self.pipeline.decode(codes), rows(ids).to(self.pipeline.device)

        rng = generator(self.plan.settings.seed, Purpose.REHEARSAL)
        sample_ids = self.plan.policy.sample_ids(replace(memory, embed=embed), rng)
        samples = Samples(sample_ids, load, self.plan.augment)
        settings = self.plan.settings
        if budget.is_open:
            limits = RoundLimits.of(len(memory.ids), settings.batch_size, judges is not None, samples.per_update)
            judge = None if judges is None else partial(self._accuracy, judges)
            return rehearse_in_rounds(top, self.head, samples, limits, settings, judge, self.on_progress)
        result = rehearse(top, self.head, samples, budget, settings, self.on_progress, self.checkpoint)
        return Rounds(result, 1, "interrupted" if result.interrupted else "budget")

    def _accuracy(self, judges: HeldOutSamples, top: nn.Sequential, head: Head) -> float:
        """Return the accuracy of top and head on held-out samples."""
        self.pipeline.load_top(state_arrays(top))
        confidence, _ = judges.measure(self.store, self.pipeline, head)
        return confidence.accuracy or 0.0

    def _embed(self, ids: Ids, codes: Codes, rows: Tensor) -> Embedded:
        """Return samples with ids (B,), codes (B, code_bytes) and head rows (B,) under the top and head in use."""
        features = self.pipeline.features(codes)
        return Embedded(ids, features, self.head.logits(features), rows.numpy())

    def _report(
        self, memory: Memory, result: Rehearsal, change: float, before: Evaluation, after: Evaluation
    ) -> SleepReport:
        tenth = max(len(result.losses) // 10, 1)
        return SleepReport(
            generation=self.store.generations.newest() + 1,
            updates=result.updates,
            seconds=time.monotonic() - self.plan.budget.start + (self.checkpoint.seconds if self.checkpoint else 0.0),
            samples=len(np.unique(result.sample_ids)),
            embedded=self._embedded,
            classes=len(result.head),
            new_classes=len(memory.new_classes),
            loss_before=float(np.mean(result.losses[:tenth])),
            loss_after=float(np.mean(result.losses[-tenth:])),
            top_change=change,
            interrupted=result.interrupted,
            held_out=after.measured.samples,
            accuracy_before=before.measured.accuracy,
            accuracy_after=after.measured.accuracy,
            confidence=after.measured.state(),
            used=not after.guards.is_worse_than(before.guards, self.plan.tolerance),
            settings=self.plan.as_dict(),
        )


def _digest(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """Return a hash of names and contents."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        found.update(name.encode())
        found.update(arrays[name].tobytes())
    return found.hexdigest()


def _relative_change(old: nn.Module, new: nn.Module) -> float:
    """Return |new - old| / |old| over all parameters."""
    pairs = list(zip(old.parameters(), new.parameters(), strict=True))
    moved = sum(float((after.detach() - before.detach()).square().sum()) for before, after in pairs)
    length = sum(float(before.detach().square().sum()) for before, _ in pairs)
    return float((moved / length) ** 0.5)
