"""How much may come in: requests at a time, bytes and seconds of each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from siesta.service.options import Limits
from siesta.service.problems import Problem, problem_response

__all__ = ["Door"]

_WITH_PICTURES = ("/v1/learn", "/v1/predict")
_WITHOUT_END = "/v1/events"


class Door:
    """Keeps requests within the limits; what is too much is refused before it is read."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app, self._limits, self._inside = app, limits, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request in, or says why not."""
        if scope["type"] != "http" or scope["path"] == _WITHOUT_END:
            await self._app(scope, receive, send)
            return
        started = False

        async def watch(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            with self._place(scope):
                async with asyncio.timeout(self._limits.seconds):
                    await self._app(scope, self._counted(Headers(scope=scope), receive), watch)
        except TimeoutError:
            if not started:
                words = f"this took longer than {self._limits.seconds:g} s: try again, or send less at once"
                await problem_response(Problem(503, words))(scope, receive, send)
        except Problem as problem:
            await problem_response(problem)(scope, receive, send)

    @contextmanager
    def _place(self, scope: Scope) -> Iterator[None]:
        """One of the places for requests with pictures."""
        if scope["path"] not in _WITH_PICTURES:
            yield
            return
        if self._inside >= self._limits.queue:
            raise Problem(429, f"{self._inside} requests are waiting already: try again in a moment")
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1

    def _counted(self, headers: Headers, receive: Receive) -> Receive:
        """The body, up to what is allowed, whatever its header says."""
        most, size = self._limits.body_bytes, 0
        words = f"a request has at most {most:,} bytes: send it in parts"
        said = headers.get("content-length", "0")
        if said.isdecimal() and int(said) > most:
            raise Problem(413, words, {"Connection": "close"})

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > most:
                raise HTTPException(413, words, {"Connection": "close"})  # of the kind that the framework lets pass
            return message

        return counted
