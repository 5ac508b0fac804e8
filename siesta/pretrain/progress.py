"""Progress of a run in steps or seconds, and signals that stop it between two steps."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

from siesta.pretrain import distributed

__all__ = ["TrainingProgress", "stop_on_signal"]


@dataclass
class TrainingProgress:
    """Progress of a run of a number of steps, or of a number of seconds spent in steps; only steps are reproducible.

    Attributes:
        steps: Steps to do; None for a run by time.
        limit: Seconds to spend; None for a run by steps.
        step: Steps done.
        seconds: Seconds spent, the mean over ranks.
    """

    steps: int | None
    limit: float | None
    step: int = 0
    seconds: float = 0.0

    @property
    def fraction(self) -> float:
        """Fraction of the run that is done, 0..1."""
        if self.limit is not None:
            return min(self.seconds / self.limit, 1.0)
        return self.step / (self.steps or 1)

    @property
    def done(self) -> bool:
        """Whether the run is complete."""
        return self.fraction >= 1

    @property
    def seconds_left(self) -> float:
        """Estimated seconds to the end."""
        if self.limit is not None:
            return max(self.limit - self.seconds, 0.0)
        return self.seconds * (1 - self.fraction) / self.fraction if self.fraction else 0.0

    def advance(self, seconds: float) -> None:
        """Count a step that took this many seconds."""
        self.step += 1
        self.seconds += distributed.all_reduce_mean(seconds)


@contextlib.contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Catch SIGINT and SIGTERM; yield a function that returns whether any rank received one.

    Only the main thread can catch signals; in other threads nothing changes.
    """
    received = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        received.set()

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: distributed.all_reduce_mean(float(received.is_set())) > 0
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
