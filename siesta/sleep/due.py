"""Whether a sleep is due, and about how long it would take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from siesta.sleep.round_limits import FEWEST_HELD_OUT, RoundLimits

__all__ = ["SleepNeed"]

_NEW_SHARE = 0.2  # a sleep is due if this share of all samples ever learned is new
_BATCH_SIZE = 64  # the default of a sleep


@dataclass(frozen=True)
class SleepNeed:
    """Whether a sleep is due, and the cost of a sleep without a budget.

    Attributes:
        due: Whether a sleep is due: there are new classes, or many samples were learned since the last sleep.
        new_classes: Number of classes that have taken part in no sleep.
        new_samples: Number of samples learned since the last sleep.
        least_updates: Smallest number of updates of a sleep without a budget; 0 if nothing is stored.
        most_updates: Largest number of updates of a sleep without a budget.
        updates_per_second: Speed of the last sleep; None before the first one.

    Example:
        >>> SleepNeed.of(new_classes=0, new_samples=30, learned=100, rehearsed=95, held_out=5).due
        True
    """

    due: bool
    new_classes: int
    new_samples: int
    least_updates: int
    most_updates: int
    updates_per_second: float | None

    @classmethod
    def of(
        cls,
        new_classes: int,
        new_samples: int,
        learned: int,
        rehearsed: int,
        held_out: int,
        last: Mapping[str, Any] | None = None,
    ) -> SleepNeed:
        """Return whether a learner needs a sleep.

        Args:
            new_classes: Number of classes that have taken part in no sleep.
            new_samples: Number of samples learned since the last sleep.
            learned: Number of samples that were ever learned.
            rehearsed: Number of stored samples that a sleep rehearses.
            held_out: Number of stored samples that are held out.
            last: The stored report of the last sleep.
        """
        limits = RoundLimits.of(rehearsed, _BATCH_SIZE, held_out >= FEWEST_HELD_OUT)
        return cls(
            due=rehearsed > 0 and (new_classes > 0 or new_samples >= _NEW_SHARE * max(learned, 1)),
            new_classes=new_classes,
            new_samples=new_samples,
            least_updates=limits.least_updates if rehearsed else 0,
            most_updates=limits.most_updates if rehearsed else 0,
            updates_per_second=_speed(last or {}),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        least, most = self.seconds or (None, None)
        return {**asdict(self), "least_seconds": least, "most_seconds": most, "words": self.summary()}

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Shortest and longest time of a sleep without a budget, at the speed of the last sleep; None if unknown."""
        if self.updates_per_second is None:
            return None
        return self.least_updates / self.updates_per_second, self.most_updates / self.updates_per_second

    def summary(self) -> str:
        """Return the end of a sentence: whether a sleep is due, why, and how long it takes without a budget."""
        new = f"{_counted(self.new_classes, 'new class', 'new classes')} and {_counted(self.new_samples, 'new sample')}"
        if not self.most_updates:
            return "nothing to rehearse yet"
        text = f"{'due' if self.due else 'not due'}: {new} since the last one"
        if self.seconds is None:
            return f"{text}; how long it takes is unknown before the first sleep"
        least, most = map(_duration, self.seconds)
        return f"{text}; it takes about {least}" + (f" to {most}" if most != least else "")


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _duration(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.2g} {unit}" if seconds < 10 * size else f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"


def _speed(report: Mapping[str, Any]) -> float | None:
    """Return the updates per second of a stored report, which may be damaged."""
    updates, seconds = report.get("updates"), report.get("seconds")
    if not isinstance(updates, int | float) or not isinstance(seconds, int | float):
        return None
    return updates / seconds if updates > 0 and seconds > 0 else None
