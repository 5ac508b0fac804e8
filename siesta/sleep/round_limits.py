"""The rounds of a sleep without a budget: how long each is, how many there are at most, and what ends them."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["FEWEST_HELD_OUT", "LEAST_GAIN", "RoundLimits", "explain_rounds"]

LEAST_GAIN = 0.005
"""Another round follows only if the last one raised the held-out accuracy (0..1) by at least this much."""

FEWEST_HELD_OUT = 20
"""Number of held-out samples that a sleep needs to judge its rounds; with fewer, it makes a fixed number of passes."""

_PASSES = (4, 4, 4, 4)  # over the stored samples, in each round
_PASSES_UNJUDGED = 8  # over the stored samples, in the only round of a sleep whose rounds cannot be judged
_FEWEST_STEPS = 20  # in a round at least; the passes over a small memory would be fewer


@dataclass(frozen=True)
class RoundLimits:
    """How long the rounds of a sleep are, and how many it makes at most.

    Attributes:
        updates: Number of updates of each round. A round consists of whole batches, so that the next one continues with
            the next sample. There is a single round if no held-out samples judge it.

    Example:
        >>> RoundLimits.of(samples=1000, batch_size=64)
        RoundLimits(updates=(4032, 4032, 4032, 4032))
        >>> RoundLimits.of(samples=1000, batch_size=64, judged=False)
        RoundLimits(updates=(8000,))
    """

    updates: tuple[int, ...]

    @classmethod
    def of(cls, samples: int, batch_size: int, judged: bool = True, per_update: int = 1) -> RoundLimits:
        """Return the limits for a learner.

        Args:
            samples: Number of stored samples that are rehearsed.
            batch_size: Number of updates in a training step.
            judged: Whether there are enough held-out samples to judge rounds by.
            per_update: Number of samples in an update; 2 for mixed pairs.
        """
        steps = (
            math.ceil(passes * samples / (per_update * batch_size))
            for passes in (_PASSES if judged else (_PASSES_UNJUDGED,))
        )
        return cls(tuple(max(number, _FEWEST_STEPS) * batch_size for number in steps))

    @property
    def least_updates(self) -> int:
        """Number of updates of the shortest sleep: it ends after the second round, the first that can be compared."""
        return sum(self.updates[:2])

    @property
    def most_updates(self) -> int:
        """Number of updates of the longest sleep, its ceiling."""
        return sum(self.updates)


def explain_rounds() -> str:
    """Return a sentence on what a sleep without a budget does."""
    return (
        f"Without a budget it rehearses in rounds until held-out samples stop gaining, at most {sum(_PASSES)} passes "
        f"over the stored samples; with fewer than {FEWEST_HELD_OUT} held-out samples {_PASSES_UNJUDGED} passes"
    )
