"""Server-sent events: each open stream reports the status of the sleep and changes of the learner."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from pydantic import BaseModel
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from siesta.service.problems import Problem

__all__ = ["EventStreamResponse", "EventStreams"]

_POLL_SECONDS = 0.25
_KEEPALIVE_SECONDS = 15.0


class EventStreamResponse(StreamingResponse):
    """Streaming response that has no time limit and reports its end, even if nothing of it was read."""

    def __init__(self, events: AsyncIterator[str], on_end: Callable[[], None], status_code: int = 200) -> None:
        # The OpenAPI schema of a route with this class has the default status.
        super().__init__(events, status_code, media_type="text/event-stream")
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_end()


class EventStreams:
    """All open event streams; without one, nothing is polled."""

    def __init__(
        self, snapshot: Callable[[], dict[str, BaseModel]], closing: asyncio.Event, max_streams: int = 100
    ) -> None:
        """Create the set of streams, none of them open.

        Args:
            snapshot: Returns the present data by name of event; called in another thread.
            closing: Event that ends all streams.
            max_streams: Number of streams that may be open at a time.
        """
        self._snapshot = snapshot
        self._closing = closing
        self._max_streams = max_streams
        self._open = 0
        self._latest: dict[str, str] = {}
        self._latest_at = 0.0
        self._snapshot_lock = asyncio.Lock()

    def open(self, is_allowed: Callable[[], bool]) -> EventStreamResponse:
        """Return a stream of the present data and of every change after it.

        Args:
            is_allowed: Whether the client may still listen; the stream ends when it may not.
        """
        if self._open >= self._max_streams:
            raise Problem(429, f"{self._max_streams} event streams are open already: request the data directly")
        self._open += 1
        return EventStreamResponse(self._events(is_allowed), self._on_end)

    def _on_end(self) -> None:
        self._open -= 1

    async def _events(self, is_allowed: Callable[[], bool]) -> AsyncIterator[str]:
        sent: dict[str, str] = {}
        last_sent_at = time.monotonic()
        yield "retry: 2000\n\n"
        while not self._closing.is_set() and is_allowed():
            current = await self._current()
            for name, data in current.items():
                if sent.get(name) != data:
                    last_sent_at = time.monotonic()
                    yield f"event: {name}\ndata: {data}\n\n"
            sent = current
            if time.monotonic() - last_sent_at > _KEEPALIVE_SECONDS:
                last_sent_at = time.monotonic()
                yield ": alive\n\n"
            await self._sleep_until_next_poll()

    async def _current(self) -> dict[str, str]:
        """Return the present data as JSON; streams that poll at the same time share one snapshot."""
        async with self._snapshot_lock:
            if time.monotonic() - self._latest_at >= _POLL_SECONDS / 2:
                models = await asyncio.to_thread(self._snapshot)
                self._latest = {name: model.model_dump_json() for name, model in models.items()}
                self._latest_at = time.monotonic()
            return self._latest

    async def _sleep_until_next_poll(self) -> None:
        try:
            await asyncio.wait_for(self._closing.wait(), _POLL_SECONDS)
        except TimeoutError:
            return
