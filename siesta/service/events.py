"""What changes, as it changes: one stream of server-sent events for each who listens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from pydantic import BaseModel
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from siesta.service.problems import Problem

__all__ = ["Streams"]

_LOOK_EVERY = 0.25  # seconds
_SIGN_OF_LIFE = 15.0  # seconds
_MOST = 100  # who listen at a time


class _Listening(StreamingResponse):
    """A stream that says when it has ended, even if nobody read any of it."""

    def __init__(self, events: AsyncIterator[str], ended: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


class Streams:
    """All who listen; nobody looks while nobody does."""

    def __init__(self, look: Callable[[], dict[str, BaseModel]], closing: asyncio.Event) -> None:
        """Takes what is looked at, by name of event, and what ends all streams. It is looked at in another thread."""
        self._look, self._closing, self._open = look, closing, 0
        self._seen: dict[str, str] = {}
        self._seen_at, self._looking = 0.0, asyncio.Lock()

    def listen(self, allowed: Callable[[], bool]) -> StreamingResponse:
        """Events, first of all how it stands, then whatever is not as it was; while the one who listens is allowed."""
        if self._open >= _MOST:
            raise Problem(429, f"{_MOST} listen already: ask for what you need instead")
        self._open += 1
        return _Listening(self._events(allowed), self._ended)

    def _ended(self) -> None:
        self._open -= 1

    async def _events(self, allowed: Callable[[], bool]) -> AsyncIterator[str]:
        known: dict[str, str] = {}
        last = time.monotonic()
        yield "retry: 2000\n\n"
        while not self._closing.is_set() and allowed():
            now = await self._now()
            for name, data in now.items():
                if known.get(name) != data:
                    last = time.monotonic()
                    yield f"event: {name}\ndata: {data}\n\n"
            known = now
            if time.monotonic() - last > _SIGN_OF_LIFE:
                last = time.monotonic()
                yield ": alive\n\n"
            await self._a_while()

    async def _now(self) -> dict[str, str]:
        """How it stands, looked at once for all who ask at the same time."""
        async with self._looking:
            if time.monotonic() - self._seen_at >= _LOOK_EVERY / 2:
                shapes = await asyncio.to_thread(self._look)
                self._seen = {name: shape.model_dump_json() for name, shape in shapes.items()}
                self._seen_at = time.monotonic()
            return self._seen

    async def _a_while(self) -> None:
        try:
            await asyncio.wait_for(self._closing.wait(), _LOOK_EVERY)
        except TimeoutError:
            return
