"""A sleep without a budget: rounds of rehearsal, each with its own schedule, until held-out samples stop gaining.

A round starts from the best weights so far, and its result is kept unless the held-out accuracy fell. The first round
is always kept: as after every sleep, the tolerance decides whether the weights of the whole sleep are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor, nn

from siesta.contracts import OnProgress, Progress
from siesta.head import Head
from siesta.rng import Purpose, derived_seed
from siesta.sleep.batch import id_batches
from siesta.sleep.budget import Budget
from siesta.sleep.loop import Rehearsal, Samples, rehearse
from siesta.sleep.report import Ending
from siesta.sleep.round_limits import LEAST_GAIN, RoundLimits
from siesta.sleep.settings import SleepSettings

__all__ = ["Judge", "Rounds", "rehearse_in_rounds"]

Judge = Callable[[nn.Sequential, Head], float]
"""(top, head) -> accuracy on the held-out samples that decide how many rounds there are."""


@dataclass(frozen=True)
class Rounds:
    """The result of rehearsing in rounds.

    Attributes:
        rehearsal: The rehearsal of all rounds that were kept; its `updates` also count those that were not.
        rounds: Number of rounds.
        ended: Why there were no further rounds.
    """

    rehearsal: Rehearsal
    rounds: int
    ended: Ending


def rehearse_in_rounds(
    top: nn.Sequential,
    head: Head,
    samples: Samples,
    limits: RoundLimits,
    settings: SleepSettings,
    judge: Judge | None = None,
    on_progress: OnProgress | None = None,
) -> Rounds:
    """Train `top` in place, and a copy of `head`, in rounds. Deterministic given the settings and the stored samples.

    A KeyboardInterrupt, or `on_progress` returning True, ends the sleep early with the best weights so far.

    Args:
        top: As for `rehearse`.
        head: As for `rehearse`.
        samples: Samples to rehearse; a round continues where the previous one ended.
        limits: Length and largest number of the rounds.
        settings: Training values of every round; the seed is that of the sleep.
        judge: Returns the accuracy by which rounds are compared; with None there is one round.
        on_progress: Called after each batch, with the progress towards the ceiling.
    """
    return _Sleep(top, head, samples, limits, settings, judge, on_progress).run()


class _Sleep:
    def __init__(
        self,
        top: nn.Sequential,
        head: Head,
        samples: Samples,
        limits: RoundLimits,
        settings: SleepSettings,
        judge: Judge | None,
        on_progress: OnProgress | None,
    ) -> None:
        self._top = top
        self._samples = replace(
            samples, ids=id_batches(samples.ids, samples.per_update * settings.batch_size, None)
        )  # whole batches, so that no id is lost between two rounds
        self._limits = limits
        self._settings = settings
        self._judge = judge
        self._on_progress = on_progress
        self._head = head
        self._weights = _copied(top)
        self._accuracy = -math.inf
        self._kept: list[Rehearsal] = []
        self._rounds = 0
        self._planned = 0
        self._updates = 0
        self._woken = False

    def run(self) -> Rounds:
        ended: Ending = "passes" if self._judge is None else "ceiling"
        for updates in self._limits.updates:
            try:
                gain = self._make_round(updates)
            except KeyboardInterrupt:
                if not self._kept:
                    raise
                self._woken = True
            if self._woken:
                ended = "interrupted"
                break
            if self._judge is not None and gain < LEAST_GAIN:
                ended = "no_gain"
                break
        self._top.load_state_dict(self._weights)
        return Rounds(self._rehearsal(), self._rounds, ended)

    def _make_round(self, updates: int) -> float:
        """Train from the best weights so far; keep the result unless it is worse; return how much accuracy it gains."""
        self._top.load_state_dict(self._weights)
        seed = derived_seed(self._settings.seed, Purpose.SLEEP_ROUND, self._rounds)
        settings = replace(self._settings, seed=seed)
        budget = Budget(updates=updates)
        result = rehearse(self._top, self._head, self._samples, budget, settings, self._follow)
        self._planned += updates
        self._rounds += 1
        self._updates += result.updates
        self._woken |= result.interrupted
        accuracy = 0.0 if self._judge is None else self._judge(self._top, result.head)
        gain = accuracy - self._accuracy
        if gain >= 0:
            self._kept.append(result)
            self._head = result.head
            self._weights = _copied(self._top)
            self._accuracy = accuracy
        return gain

    def _follow(self, progress: Progress) -> bool:
        """Report the progress of the sleep, given that of the current round."""
        most = self._limits.most_updates
        spent = self._planned + progress.fraction * self._limits.updates[self._rounds]
        now = replace(
            progress,
            updates=self._updates + progress.updates,
            fraction=spent / most,
            seconds_left=(most - spent) / progress.updates_per_second,
            round=self._rounds + 1,
        )
        self._woken |= self._on_progress is not None and bool(self._on_progress(now))
        return self._woken

    def _rehearsal(self) -> Rehearsal:
        return Rehearsal(
            head=self._head,
            updates=self._updates,
            sample_ids=np.concatenate([rehearsal.sample_ids for rehearsal in self._kept]),
            losses=[loss for rehearsal in self._kept for loss in rehearsal.losses],
            interrupted=self._woken,
        )


def _copied(top: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in top.state_dict().items()}
