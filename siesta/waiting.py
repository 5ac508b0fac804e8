"""When a sleep begins that is to begin by itself: after a time of rest, or in a window of every day."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from datetime import time as Time
from pathlib import Path

from siesta.errors import BadInput

__all__ = ["Idle", "Window"]

_UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Idle:
    """So many seconds in which nothing was taught.

    Example:
        >>> Idle.of("idle:10m").seconds
        600
    """

    seconds: int

    @classmethod
    def of(cls, words: str) -> Idle:
        """Reads words like idle:90s, idle:10m or idle:2h."""
        match = re.fullmatch(r"idle:(\d{1,6})([smh])", words)
        if match is None:
            raise BadInput(f"'{words}' is no time of rest: write it like idle:10m (s, m or h)")
        return cls(int(match[1]) * _UNITS[match[2]])

    def left(self, path: Path) -> float:
        """Seconds until a learner will have rested that long, if it is left alone."""
        files = [path / f"store.sqlite{end}" for end in ("", "-wal")]
        last = max((file.stat().st_mtime for file in files if file.exists()), default=0.0)
        return self.seconds - (time.time() - last)


@dataclass(frozen=True)
class Window:
    """A part of every day, maybe over midnight.

    Example:
        >>> window = Window.of("22:00-05:30")
        >>> window.left(datetime(2026, 1, 1, 21, 0)), window.left(datetime(2026, 1, 1, 4, 0))
        (3600.0, 0.0)
        >>> window.end(datetime(2026, 1, 1, 22, 10))
        datetime.datetime(2026, 1, 2, 5, 30)
    """

    first: Time
    last: Time

    @classmethod
    def of(cls, words: str) -> Window:
        """Reads words like 02:00-05:00."""
        try:
            first, last = (datetime.strptime(word, "%H:%M").time() for word in words.split("-"))
        except ValueError:
            raise BadInput(f"'{words}' is no part of a day: write it like 02:00-05:00") from None
        if first == last:
            raise BadInput(f"'{words}' is no part of a day: it ends when it begins")
        return cls(first, last)

    def left(self, now: datetime) -> float:
        """Seconds until it begins; 0 inside it."""
        if self.end(now) - self._begin_before(self.end(now)) > self.end(now) - now:
            return 0.0
        begin = datetime.combine(now, self.first)
        return ((begin if begin > now else begin + timedelta(days=1)) - now).total_seconds()

    def end(self, now: datetime) -> datetime:
        """The next moment at which it ends."""
        end = datetime.combine(now, self.last)
        return end if end > now else end + timedelta(days=1)

    def _begin_before(self, end: datetime) -> datetime:
        begin = datetime.combine(end, self.first)
        return begin if begin < end else begin - timedelta(days=1)
