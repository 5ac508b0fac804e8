"""The clock of a sleep: how much of its budget is spent."""

from __future__ import annotations

import statistics
import time
from collections import deque

from siesta.contracts import Progress
from siesta.sleep.budget import Budget
from siesta.sleep.schedule import Schedule, one_cycle

__all__ = ["Clock"]

_RECENT_STEPS = 15  # how many steps the estimate of the next one's time is based on


class Clock:
    """How much of a sleep's budget is spent, counted in batches for an update budget and in seconds for a time budget.

    Planning and the first batch, which is slow because everything is new, are part of a time budget but not of its
    schedule: that begins after the first batch and ends with the last one that fits.
    """

    def __init__(self, budget: Budget, batch_size: int, schedule: Schedule = one_cycle) -> None:
        self._budget = budget
        self._schedule = schedule
        self._steps = None if budget.updates is None else -(-budget.updates // batch_size)
        now = time.monotonic()
        self._batch_start = now
        self._first_start = now
        self._last_end = now
        self._schedule_start = now
        self._step = 0
        self._updates = 0
        self._spent = 0
        self._step_times: deque[float] = deque(maxlen=_RECENT_STEPS)

    def start_batch(self) -> None:
        """Note that a batch begins."""
        self._batch_start = time.monotonic()
        if self._step == 0:
            self._first_start = self._batch_start

    def end_batch(self, updates: int, spent: int) -> None:
        """Note that a batch ended.

        Args:
            updates: Updates that it made.
            spent: Updates that were planned for it, which is more when some of its samples were evicted.
        """
        self._last_end = time.monotonic()
        seconds = self._last_end - self._batch_start
        if self._step == 0:
            self._schedule_start = self._last_end
            self._step_times.append(seconds / 2)
        elif self._step == 1:
            self._step_times[0] = seconds
        else:
            self._step_times.append(seconds)
        self._step += 1
        self._updates += updates
        self._spent += spent

    def _next_step_seconds(self) -> float:
        return statistics.median(self._step_times) if self._step_times else 0.0

    def lr_share(self) -> float:
        """Return the share of the maximum learning rate for the next batch."""
        if self._steps is not None:
            return self._schedule(self._step / self._steps, 1 / self._steps)
        end = self._budget.start + (self._budget.seconds or 0.0)
        length = end - self._next_step_seconds() - self._schedule_start
        fraction = (self._batch_start - self._schedule_start) / length if length > 0 else 1.0
        return self._schedule(fraction if self._step else 0.0, 0.0)

    def is_over(self) -> bool:
        """Return whether no further batch fits."""
        if self._budget.seconds is not None:
            return self._last_end + self._next_step_seconds() > self._budget.start + self._budget.seconds
        return self._spent >= (self._budget.updates or 0)

    def progress(self, loss: float, lr: float) -> Progress:
        """Return where the sleep stands after a batch with this mean loss and learning rate."""
        working = max(self._last_end - self._first_start, 1e-9)
        if self._budget.seconds is not None:
            left = max(self._budget.start + self._budget.seconds - self._last_end, 0.0)
            fraction = 1 - left / self._budget.seconds
        else:
            fraction = self._spent / (self._budget.updates or 1)
            left = working * (1 - fraction) / fraction
        return Progress(self._updates, fraction, loss, lr, self._updates / working, left)
