"""Middleware that limits the number of concurrent requests, and the bytes and the time of each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from siesta.service.endpoints import Endpoints
from siesta.service.options import RequestLimits
from siesta.service.problems import Problem, problem_response

__all__ = ["LimitsMiddleware"]


class LimitsMiddleware:
    """Refuses requests beyond the limits before their body is read."""

    def __init__(self, app: ASGIApp, limits: RequestLimits, endpoints: Endpoints) -> None:
        """Create the middleware.

        Args:
            app: Application that receives the requests within the limits.
            limits: The limits.
            endpoints: Declarations of which requests have images or no end.
        """
        self._app = app
        self._endpoints = endpoints
        self._limits = limits
        self._active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request within the limits, or answer with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        needs = self._endpoints.needs(scope)
        if needs.endless:
            await self._app(scope, receive, send)
            return
        started = False

        async def send_and_note(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            with self._queue_slot() if needs.images else nullcontext():
                async with asyncio.timeout(self._limits.seconds):
                    await self._app(scope, self._limit_body(Headers(scope=scope), receive), send_and_note)
        except TimeoutError:
            if not started:
                detail = f"this took longer than {self._limits.seconds:g} s: try again, or send less at once"
                await problem_response(Problem(503, detail))(scope, receive, send)
        except Problem as problem:
            await problem_response(problem)(scope, receive, send)

    @contextmanager
    def _queue_slot(self) -> Iterator[None]:
        """Occupy one of the slots for requests with images."""
        if self._active >= self._limits.queue:
            raise Problem(429, f"{self._active} requests are waiting already: try again in a moment")
        self._active += 1
        try:
            yield
        finally:
            self._active -= 1

    def _limit_body(self, headers: Headers, receive: Receive) -> Receive:
        """Return a `receive` that counts the body's bytes, whatever its Content-Length says."""
        max_bytes = self._limits.body_bytes
        detail = f"a request has at most {max_bytes:,} bytes: send it in parts"
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > max_bytes:
            raise Problem(413, detail, {"Connection": "close"})
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > max_bytes:
                # Raised inside the framework's body parser, which replaces exceptions other than HTTPException.
                raise HTTPException(413, detail, {"Connection": "close"})
            return message

        return receive_limited
