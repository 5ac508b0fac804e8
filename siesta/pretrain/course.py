"""How far a run has come: in steps, or in seconds of work; and a wish to stop, heard between two steps."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

from siesta.pretrain import ranks

__all__ = ["Course", "stoppable"]


@dataclass
class Course:
    """A run of so many steps, or of so many seconds spent in steps; the former can be repeated exactly.

    Attributes:
        steps: To do; None for a run by time.
        limit: Seconds to spend; None for a run by steps.
        step: Done so far.
        seconds: Spent so far, on all ranks alike.
    """

    steps: int | None
    limit: float | None
    step: int = 0
    seconds: float = 0.0

    @property
    def fraction(self) -> float:
        """Share of the run that is over, 0..1."""
        if self.limit is not None:
            return min(self.seconds / self.limit, 1.0)
        return self.step / (self.steps or 1)

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return self.fraction >= 1

    @property
    def left(self) -> float:
        """Seconds to the end, going by those spent."""
        if self.limit is not None:
            return max(self.limit - self.seconds, 0.0)
        return self.seconds * (1 - self.fraction) / self.fraction if self.fraction else 0.0

    def tick(self, seconds: float) -> None:
        """A step is done."""
        self.step += 1
        self.seconds += ranks.mean(seconds)


@contextlib.contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and the wish to terminate are noted; what is yielded says whether one came, to any rank.

    Only the main thread hears them; elsewhere they act as ever.
    """
    heard = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def note(_number: int, _frame: FrameType | None) -> None:
        heard.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: ranks.mean(float(heard.is_set())) > 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
