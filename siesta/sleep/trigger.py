"""Triggers that begin a sleep automatically: after an idle time, or in a daily window."""

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
    """An idle time: a number of seconds in which nothing has changed.

    Example:
        >>> Idle.parse("idle:10m").seconds
        600
    """

    seconds: int

    @classmethod
    def parse(cls, text: str) -> Idle:
        """Return the trigger for a text such as idle:90s, idle:10m or idle:2h."""
        match = re.fullmatch(r"idle:(\d{1,6})([smh])", text)
        if match is None:
            raise BadInput(f"'{text}' is not an idle trigger: write it like idle:10m (s, m or h)")
        return cls(int(match[1]) * _UNITS[match[2]])

    @property
    def message(self) -> str:
        """What the sleep waits for."""
        return f"waiting until nothing has changed for {self.seconds} s"

    def left(self, path: Path) -> float:
        """Return the seconds until the learner at `path` has been idle long enough, if nothing changes until then."""
        files = [path / f"store.sqlite{suffix}" for suffix in ("", "-wal")]
        last = max((file.stat().st_mtime for file in files if file.exists()), default=0.0)
        return self.seconds - (time.time() - last)


@dataclass(frozen=True)
class Window:
    """A daily window; it may contain midnight.

    Example:
        >>> window = Window.parse("22:00-05:30")
        >>> window.left_at(datetime(2026, 1, 1, 21, 0)), window.left_at(datetime(2026, 1, 1, 4, 0))
        (3600.0, 0.0)
        >>> window.end(datetime(2026, 1, 1, 22, 10))
        datetime.datetime(2026, 1, 2, 5, 30)
    """

    first: Time
    last: Time

    @classmethod
    def parse(cls, text: str) -> Window:
        """Return the window for a text such as 02:00-05:00."""
        try:
            first, last = (datetime.strptime(part, "%H:%M").time() for part in text.split("-"))
        except ValueError:
            raise BadInput(f"'{text}' is not a daily window: write it like 02:00-05:00") from None
        if first == last:
            raise BadInput(f"'{text}' is not a daily window: begin and end are the same, give two times")
        return cls(first, last)

    @property
    def message(self) -> str:
        """What the sleep waits for."""
        return f"waiting for {self.first:%H:%M}"

    def left(self, _path: Path) -> float:
        """Return the seconds until the window begins; 0 inside it."""
        return self.left_at(datetime.now())

    def left_at(self, now: datetime) -> float:
        """Return the seconds from `now` until the window begins; 0 inside it."""
        end = self.end(now)
        begin = datetime.combine(end, self.first)
        if begin >= end:
            begin -= timedelta(days=1)
        return max((begin - now).total_seconds(), 0.0)

    def end(self, now: datetime) -> datetime:
        """Return the next moment at which the window ends."""
        end = datetime.combine(now, self.last)
        return end if end > now else end + timedelta(days=1)
