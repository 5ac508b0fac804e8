"""One sleep of a learner: from its memory to a new generation of weights, and to the use of it."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from siesta.backbones.frozen_norm import with_frozen_norms
from siesta.budget import Budget
from siesta.catch_up import CatchUp
from siesta.confidence import Confidence
from siesta.contracts import Augmentation, Codes, Embedded, Ids, Memory, OnProgress, Policy, SleepReport
from siesta.errors import BadInput
from siesta.head import Head, cosine_logits
from siesta.pipeline import Pipeline
from siesta.sleep import Rehearsal, SleepSettings, rehearse, rows_of_samples
from siesta.store import Store

__all__ = ["Consolidation"]

_EMBEDDED_AT_ONCE = 256
_PLAN, _JUDGES = (
    2,
    3,
)  # purpose numbers of the random streams: what a policy draws, which held-out samples are asked about
_MOST_JUDGES, _JUDGED_AT_ONCE = 512, 32
_JUDGING = 0.1  # share of a time budget after which no more of them are asked about before it, and so after it

Judges = tuple[Ids, npt.NDArray[np.int32]]
"""Ids (B,) and class ids (B,) of held-out samples."""


@dataclass
class Consolidation:
    """What a sleep works with, and how it is to go.

    Attributes:
        store: Asleep: inside its `sleeping()`.
        pipeline: With the top in use; in the end, with the new one.
        head: Of the moment of `newest`.
        newest: The newest sample that takes part; others may be taught meanwhile.
        budget: When it ends.
        settings: How it trains.
        policy: What is rehearsed.
        augment: How pairs are mixed, if they are.
        called: What the report calls the two.
        tolerance: How much smaller the share of right answers to held-out samples may become; by more, and the new
            weights are kept but not used.
        on_progress: Called after each batch.
        started: When that was, on the monotonic clock.
    """

    store: Store
    pipeline: Pipeline
    head: Head
    newest: int
    budget: Budget
    settings: SleepSettings
    policy: Policy
    augment: Augmentation | None
    called: Mapping[str, str | None]
    tolerance: float
    on_progress: OnProgress | None
    started: float = field(default_factory=time.monotonic)
    _embedded: int = 0

    def run(self) -> SleepReport:
        """Rehearses, keeps the new weights, and puts them in use with all that was taught meanwhile counted in.

        They are not put in use where they do worse on held-out samples than is tolerated.
        """
        memory = self.store.memory(self.newest)
        if not len(memory.ids):
            raise BadInput("there is nothing to sleep on: teach something first")
        start, left = time.monotonic(), self.budget
        longest = None if left.seconds is None else _JUDGING * left.seconds
        before, judges = self._judged(self.head, self._judges(), longest)
        if left.seconds is not None:  # as long as that took, it will take again
            left = replace(left, seconds=max(left.seconds - (time.monotonic() - start), 0.001))
        top = copy.deepcopy(self.pipeline.backbone.top).to(self.pipeline.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        result = self._rehearsed(memory, top, left)
        changed = _change(self.pipeline.backbone.top, top)
        self.pipeline.load_top(top.state_dict())
        after, _ = self._judged(result.head, judges)
        report = self._report(memory, result, changed, before, after)
        tensors = {"top": top.state_dict(), "head": result.head.state()}
        number = self.store.add_generation(tensors, self.newest, report.as_dict())
        if report.used:
            self.store.use_generation(number, CatchUp(self.pipeline.features, result.head), result.rehearsed)
        return report

    def _judges(self) -> Judges:
        """Held-out samples in random order, not too many."""
        ids, classes = self.store.samples.held_out(self.newest)
        order = np.random.default_rng((self.settings.seed, _JUDGES)).permutation(len(ids))[:_MOST_JUDGES]
        return ids[order], classes[order]

    def _judged(self, head: Head, judges: Judges, longest: float | None = None) -> tuple[Confidence, Judges]:
        """How held-out samples are answered with the top as it is and a head.

        Args:
            head: To go with it.
            judges: All of them; or, if it takes longer than so many seconds, the first ones.
            longest: That many seconds, if there is a limit.

        Returns:
            That, and who was asked.
        """
        (ids, classes), done, start = judges, 0, time.monotonic()
        logits, rows = [np.zeros((0, len(head)), np.float32)], [np.zeros(0, np.int64)]
        while done < len(ids) and (not done or longest is None or time.monotonic() - start < longest):
            some = slice(done, done + _JUDGED_AT_ONCE)
            present, codes = self.store.get(ids[some])
            if len(codes):
                features = torch.from_numpy(self.pipeline.features(codes))
                logits.append(cosine_logits(features, head.weights(), head.scale).numpy())
                rows.append(np.searchsorted(head.class_ids.numpy(), classes[some][present]))
            done += _JUDGED_AT_ONCE
        return Confidence.of(np.concatenate(logits), np.concatenate(rows)), (ids[:done], classes[:done])

    def _rehearsed(self, memory: Memory, top: nn.Sequential, budget: Budget) -> Rehearsal:
        rows = rows_of_samples(memory, self.head)

        def embed(ids: Ids) -> Iterator[Embedded]:
            for start in range(0, len(ids), _EMBEDDED_AT_ONCE):
                some = ids[start : start + _EMBEDDED_AT_ONCE]
                present, codes = self.store.get(some)
                self._embedded += len(codes)
                if len(codes):
                    yield self._seen(some[present], codes, rows(some[present]))

        def load(picked: Ids) -> tuple[Ids, Tensor, Tensor]:
            present, codes = self.store.get(picked)
            ids = picked[present]
            return ids, self.pipeline.decode(codes), rows(ids).to(self.pipeline.device)

        rng = np.random.default_rng((self.settings.seed, _PLAN))
        picks = self.policy.picks(replace(memory, embed=embed), rng)
        return rehearse(
            with_frozen_norms(top),
            self.head,
            picks,
            load,
            budget,
            self.settings,
            self.on_progress,
            self.augment,
        )

    def _seen(self, ids: Ids, codes: Codes, rows: Tensor) -> Embedded:
        """Samples with these ids (B,), codes (B, code_bytes) and head rows (B,), as top and head see them now."""
        features = torch.from_numpy(self.pipeline.features(codes))
        logits = cosine_logits(features, self.head.weights(), self.head.scale)
        return Embedded(ids, features.numpy(), logits.numpy(), rows.numpy())

    def _report(
        self, memory: Memory, result: Rehearsal, changed: float, before: Confidence, after: Confidence
    ) -> SleepReport:
        edge = max(len(result.losses) // 10, 1)
        return SleepReport(
            generation=self.store.generations.newest() + 1,
            updates=result.updates,
            seconds=time.monotonic() - self.started,
            samples=len(np.unique(result.rehearsed)),
            embedded=self._embedded,
            classes=len(result.head),
            new_classes=len(memory.new_classes),
            loss_before=float(np.mean(result.losses[:edge])),
            loss_after=float(np.mean(result.losses[-edge:])),
            top_change=changed,
            interrupted=result.interrupted,
            held_out=after.asked,
            accuracy_before=before.accuracy,
            accuracy_after=after.accuracy,
            confidence=after.state(),
            used=not _worse(before, after, self.tolerance),
            settings={**self.called, **vars(self.settings)},
        )


def _worse(before: Confidence, after: Confidence, tolerance: float) -> bool:
    """Whether answers became worse by more than is tolerated, and than chance explains: one standard error."""
    if before.accuracy is None or after.accuracy is None:
        return False
    shares = [(before.accuracy, before.asked), (after.accuracy, after.asked)]
    chance = math.sqrt(sum(share * (1 - share) / asked for share, asked in shares))
    return before.accuracy - after.accuracy > tolerance + chance


def _change(old: nn.Module, new: nn.Module) -> float:
    """|new - old| / |old| over all parameters."""
    pairs = list(zip(old.parameters(), new.parameters(), strict=True))
    moved = sum(float((b.detach() - a.detach()).square().sum()) for a, b in pairs)
    return float((moved / sum(float(a.detach().square().sum()) for a, _ in pairs)) ** 0.5)
