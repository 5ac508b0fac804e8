"""The budget of a sleep: a number of updates, a length of time, or neither."""

from __future__ import annotations

import math
import operator
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from siesta.errors import BadInput

__all__ = ["Budget"]


@dataclass(frozen=True)
class Budget:
    """How long to sleep: a number of updates, or seconds from the moment the budget was created.

    With neither of them, a sleep ends by itself, when held-out samples stop gaining; see `rehearse_in_rounds`.

    Attributes:
        updates: Backward passes of single samples.
        seconds: Wall time.
        start: When the budget was created, on the monotonic clock.

    Example:
        >>> Budget.of(minutes=2).seconds
        120
    """

    updates: int | None = None
    seconds: float | None = None
    start: float = field(default_factory=time.monotonic, compare=False)

    @classmethod
    def of(
        cls,
        updates: int | None = None,
        seconds: float | None = None,
        minutes: float | None = None,
        until: datetime | str | None = None,
    ) -> Budget:
        """Return the budget for one or none of these; `until` is a datetime, or "HH:MM" for the next such time."""
        given = sum(value is not None for value in (updates, seconds, minutes, until))
        if given > 1:
            raise BadInput("a sleep has at most one budget: give one of updates, seconds, minutes or until, or none")
        if given == 0:
            return cls()
        if updates is not None:
            _check_positive(updates)
            return cls(updates=_whole(updates))
        if until is not None:
            seconds = _seconds_until(until)
        elif minutes is not None:
            seconds = 60 * minutes
        _check_positive(seconds or 0)
        return cls(seconds=seconds)

    @property
    def is_open(self) -> bool:
        """Whether the sleep ends by itself."""
        return self.updates is None and self.seconds is None


def _check_positive(amount: float) -> None:
    if not (amount > 0 and math.isfinite(amount)):
        raise BadInput(f"the budget of a sleep must be finite and above zero, not {amount}")


def _whole(updates: int) -> int:
    try:
        return operator.index(updates)
    except TypeError:
        raise BadInput(f"a number of updates must be whole, not {updates}") from None


def _seconds_until(moment: datetime | str) -> float:
    if isinstance(moment, str):
        moment = _next(moment)
    left = (moment - datetime.now(moment.tzinfo)).total_seconds()
    if left <= 0:
        raise BadInput(f"{moment:%Y-%m-%d %H:%M} has passed: give a moment in the future")
    return left


def _next(time_of_day: str) -> datetime:
    """Return the next moment with this time of day, "HH:MM"."""
    try:
        clock = datetime.strptime(time_of_day, "%H:%M").time()
    except ValueError:
        raise BadInput(f"'{time_of_day}' is not a time of day: write it like 06:30") from None
    now = datetime.now()
    today = datetime.combine(now, clock)
    return today if today > now else today + timedelta(days=1)
