"""A receiver of events, with a queue and a thread of its own, so that what happens there delays no one."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from threading import Condition, Thread
from threading import Event as Flag

from siesta.service.events.event import Event

__all__ = ["NotDelivered", "Sink"]

MOST_QUEUED = 1000
"""Events that wait for a receiver at most; a further one replaces the oldest."""

_FIRST_PAUSE = 1.0  # seconds before an event is sent again; each further pause is twice as long
_LONGEST_PAUSE = 300.0
_CLOSING_SECONDS = 2.0  # for the events that still wait when the service stops
_log = logging.getLogger(__name__)


class NotDelivered(Exception):
    """An event was not delivered: it is sent again later."""


class Sink(ABC):
    """Delivers events in order, one at a time; the newest wait while the receiver is away."""

    def __init__(self, name: str, first_pause: float = _FIRST_PAUSE, longest_pause: float = _LONGEST_PAUSE) -> None:
        """Create the queue; `start` begins to deliver.

        Args:
            name: Name of the receiver in log messages.
            first_pause: Seconds before an event is sent again for the first time.
            longest_pause: Seconds before it is sent again, however often it was not delivered.
        """
        self.name = name
        self.dropped = 0
        self._queue: deque[Event] = deque()
        self._pauses = first_pause, longest_pause
        self._changed = Condition()
        self._closing = Flag()
        self._thread = Thread(target=self._run, name=f"events to {name}", daemon=True)

    @abstractmethod
    def deliver(self, event: Event) -> None:
        """Deliver one event.

        Raises:
            NotDelivered: It should be sent again.
        """

    def start(self) -> None:
        """Start to deliver."""
        self._thread.start()

    def put(self, event: Event) -> None:
        """Queue an event and return at once; the oldest of a full queue is dropped."""
        with self._changed:
            self._queue.append(event)
            if len(self._queue) > MOST_QUEUED:
                self._queue.popleft()
                self.dropped += 1
                if self.dropped == 1 or self.dropped % MOST_QUEUED == 0:
                    _log.warning("%s does not take events: %d old ones were dropped", self.name, self.dropped)
            self._changed.notify()

    def close(self) -> None:
        """Deliver what still waits, for two seconds at most, and end the thread."""
        with self._changed:
            self._changed.wait_for(lambda: not self._queue, _CLOSING_SECONDS)
            self._closing.set()
            self._changed.notify_all()
        self._thread.join(_CLOSING_SECONDS)

    def _run(self) -> None:
        first, longest = self._pauses
        pause, away = first, False
        while (event := self._next()) is not None:
            try:
                self.deliver(event)
            except NotDelivered as error:
                if not away:
                    _log.warning("%s does not take events, which are sent again: %s", self.name, error)
                self._closing.wait(pause)
                pause, away = min(2 * pause, longest), True
                continue
            except Exception:
                _log.exception("an event to %s failed and is dropped", self.name)
            pause, away = first, False
            with self._changed:
                if self._queue and self._queue[0] is event:  # a full queue may have dropped it meanwhile
                    self._queue.popleft()
                self._changed.notify_all()

    def _next(self) -> Event | None:
        """Wait for an event, which stays in the queue; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing.is_set())
            return None if self._closing.is_set() else self._queue[0]
