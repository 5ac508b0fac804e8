"""HTTP connections of the server, with a time limit on the headers of a request."""

from __future__ import annotations

import asyncio
from typing import cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["HttpProtocol"]


class HttpProtocol(H11Protocol):
    """Connection that is closed when the headers of a request are not complete in time.

    Uvicorn closes connections between two requests, but waits for headers that were begun, and for those of the first
    request, without limit. `LimitsMiddleware` limits the time from there on.
    """

    header_seconds = 10.0
    """Time from the connection, or from the first byte of a later request, to the end of the request's headers."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the headers of the first request."""
        super().connection_made(cast(asyncio.Transport, transport))
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        """Handle received bytes, after which headers are complete, or are waited for."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._clear_deadline()
        elif self._deadline is None:
            self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._clear_deadline()
        super().connection_lost(exc)

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(self.header_seconds, self.transport.close)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
