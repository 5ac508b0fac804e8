"""What changes, as it changes: one stream of server-sent events for each who listens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from pydantic import BaseModel

from siesta.service.problems import Problem

__all__ = ["Streams"]

_LOOK_EVERY = 0.25  # seconds
_SIGN_OF_LIFE = 15.0  # seconds
_MOST = 100  # who listen at a time


class Streams:
    """All who listen; nobody looks while nobody does."""

    def __init__(self, look: Callable[[], dict[str, BaseModel]], closing: asyncio.Event) -> None:
        """Takes what is looked at, by name of event, and what ends all streams. It is looked at in another thread."""
        self._look, self._closing, self._open = look, closing, 0
        self._seen: dict[str, str] = {}
        self._seen_at, self._looking = 0.0, asyncio.Lock()

    def listen(self) -> AsyncIterator[str]:
        """Events, first of all how it stands, then whatever is not as it was."""
        if self._open >= _MOST:
            raise Problem(429, f"{_MOST} listen already: ask for what you need instead")
        return self._stream()

    async def _stream(self) -> AsyncIterator[str]:
        self._open += 1
        try:
            known: dict[str, str] = {}
            last = time.monotonic()
            yield "retry: 2000\n\n"
            while not self._closing.is_set():
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
        finally:
            self._open -= 1

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
