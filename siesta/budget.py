"""How long a sleep lasts, and how its rate runs over that time, whether counted in updates or in seconds."""

from __future__ import annotations

import math
import operator
import statistics
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from siesta.contracts import Progress
from siesta.errors import BadInput

__all__ = ["SCHEDULES", "Budget", "Clock", "Schedule", "cosine", "make_schedule", "one_cycle", "steps"]

_RISE = 0.3  # share of the sleep in which the rate rises
_START, _END = 1 / 25, 1 / 25e4  # rate at either end, as a share of its maximum: torch's OneCycleLR defaults
_DROPS = (15 / 50, 30 / 50, 45 / 50)  # of the paper's 50 epochs of base initialisation
_WARM_UP = 5 / 600  # of the paper's 600 epochs of offline training

Schedule = Callable[[float, float], float]
"""(share of the budget spent before a batch, share that the batch takes) -> share of the maximal rate for it."""


@dataclass(frozen=True)
class Budget:
    """How long to sleep: a number of updates, or seconds from the moment the budget was made."""

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
        """One of: updates, seconds, minutes, or a moment (a datetime, or "HH:MM" for the next such time)."""
        if sum(value is not None for value in (updates, seconds, minutes, until)) != 1:
            raise BadInput("say how long to sleep by exactly one of updates, seconds, minutes or until")
        if until is not None:
            seconds = _seconds_until(until)
        elif minutes is not None:
            seconds = 60 * minutes
        amount = updates if updates is not None else seconds
        if amount is None or not (amount > 0 and math.isfinite(amount)):
            raise BadInput(f"a sleep needs a budget above zero that ends, not {amount}")
        try:
            return cls(updates=None if updates is None else operator.index(updates), seconds=seconds)
        except TypeError:
            raise BadInput(f"a number of updates is whole, not {updates}") from None


def _seconds_until(moment: datetime | str) -> float:
    if isinstance(moment, str):
        try:
            clock = datetime.strptime(moment, "%H:%M").time()
        except ValueError:
            raise BadInput(f"'{moment}' is not a time of day: write it like 06:30") from None
        now = datetime.now()
        today = datetime.combine(now, clock)
        moment = today if today > now else today + timedelta(days=1)
    left = (moment - datetime.now(moment.tzinfo)).total_seconds()
    if left <= 0:
        raise BadInput(f"{moment:%Y-%m-%d %H:%M} is over already: give a moment to come")
    return left


def one_cycle(fraction: float, batch: float = 0.0) -> float:
    """Up by a cosine for 30 % of a sleep, then down to almost nothing; the last batch is at the end, as in torch."""
    if batch >= 1:  # one batch is all there is
        return _START
    rise = max(_RISE - batch, 0.0)
    if fraction <= rise and rise > 0:
        low, high, part = _START, 1.0, fraction / rise
    else:
        low, high, part = 1.0, _END, (fraction - rise) / (1 - batch - rise)
    return high + (low - high) * (1 + math.cos(math.pi * min(part, 1.0))) / 2


def steps(fraction: float, _batch: float = 0.0) -> float:
    """A tenth of the rate after 15, 30 and 45 of 50 epochs: the paper's base initialisation."""
    return float(0.1 ** sum(fraction >= drop for drop in _DROPS))


def cosine(fraction: float, batch: float = 0.0) -> float:
    """Up in a straight line for 5 of 600 epochs, then down to zero by a cosine: the paper's offline learner."""
    if fraction < _WARM_UP:
        return min((fraction + batch) / _WARM_UP, 1.0)  # where the batch ends, so that none learns nothing
    return (1 + math.cos(math.pi * min((fraction - _WARM_UP) / (1 - _WARM_UP), 1.0))) / 2


SCHEDULES: dict[str, Schedule] = {"one_cycle": one_cycle, "steps": steps, "cosine": cosine}


def make_schedule(name: str) -> Schedule:
    """The schedule of a name."""
    if name not in SCHEDULES:
        raise BadInput(f"there is no schedule '{name}': choose one of {', '.join(SCHEDULES)}")
    return SCHEDULES[name]


class Clock:
    """Where a sleep stands in its budget: batches for an update budget, seconds for a time budget.

    Planning, and a first batch that is slow because everything is new, are part of a time budget but not of its
    schedule: that begins after the first batch and is at its end in the last one that still fits.
    """

    def __init__(self, budget: Budget, batch_size: int, schedule: Schedule = one_cycle) -> None:
        self._budget, self._schedule = budget, schedule
        self._steps = None if budget.updates is None else -(-budget.updates // batch_size)
        self._begun = self._first = self._last = self._cycle_start = time.monotonic()
        self._step = self._updates = self._spent = 0
        self._step_times: deque[float] = deque(maxlen=15)

    def begin(self) -> None:
        """A batch is picked."""
        self._begun = time.monotonic()
        if self._step == 0:
            self._first = self._begun

    def tick(self, updates: int, spent: int) -> None:
        """A batch is done: so many updates, of so many that were planned."""
        self._last = time.monotonic()
        if self._step == 0:
            self._cycle_start = self._last
            self._step_times.append((self._last - self._begun) / 2)
        elif self._step == 1:
            self._step_times[0] = self._last - self._begun
        else:
            self._step_times.append(self._last - self._begun)
        self._step += 1
        self._updates += updates
        self._spent += spent

    def _next_step(self) -> float:
        """Seconds that the next batch will take, going by the last ones."""
        return statistics.median(self._step_times) if self._step_times else 0.0

    def share(self) -> float:
        """Share of the maximal rate for the next batch."""
        if self._steps is not None:
            return self._schedule(self._step / self._steps, 1 / self._steps)
        end = self._budget.start + (self._budget.seconds or 0.0)
        room = end - self._next_step() - self._cycle_start
        done = (self._begun - self._cycle_start) / room if room > 0 else 1.0
        return self._schedule(done if self._step else 0.0, 0.0)

    def over(self) -> bool:
        """True when no further batch fits."""
        if self._budget.seconds is not None:
            return self._last + self._next_step() > self._budget.start + self._budget.seconds
        return self._spent >= (self._budget.updates or 0)

    def progress(self, loss: float, rate: float) -> Progress:
        """Where things stand now."""
        working = max(self._last - self._first, 1e-9)
        if self._budget.seconds is not None:
            left = max(self._budget.start + self._budget.seconds - self._last, 0.0)
            fraction = 1 - left / self._budget.seconds
        else:
            fraction = self._spent / (self._budget.updates or 1)
            left = working * (1 - fraction) / fraction
        return Progress(self._updates, fraction, loss, rate, self._updates / working, left)
