"""Time limit on the headers of a request, which is not one on its body or on its answer."""

from __future__ import annotations

import asyncio

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from siesta.service.protocol import HttpProtocol
from tests.service.event_loop import run_async

HEADERS = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n"


class QuickProtocol(HttpProtocol):
    header_seconds = 0.6


async def application(_scope: Scope, receive: Receive, send: Send) -> None:
    body = b""
    while message := await receive():
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": body})


async def exchange(*parts: bytes | float) -> tuple[bytes, float]:
    """Send parts on a connection, wait for seconds between; return what came until it was closed, and when it was."""
    config = uvicorn.Config(application, log_config=None, lifespan="off")
    loop = asyncio.get_running_loop()
    state = ServerState()
    server = await loop.create_server(lambda: QuickProtocol(config, state, {}), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        start = loop.time()
        for part in parts:
            if isinstance(part, bytes):
                writer.write(part)
            else:
                await asyncio.sleep(part)
        answer = await reader.read()
        writer.close()
    return answer, loop.time() - start


def test_a_connection_without_complete_headers_is_closed() -> None:
    for parts in ([], [HEADERS[:20]]):
        answer, _ = run_async(exchange(*parts))
        assert answer == b""


def test_headers_of_a_second_request_have_to_be_complete_too() -> None:
    answer, seconds = run_async(exchange(HEADERS, b"abcd", 0.2, HEADERS[:20]))
    assert answer.count(b"200 OK") == 1 and answer.endswith(b"abcd")
    assert seconds >= 0.6


def test_bodies_and_the_time_between_requests_are_not_limited_by_it() -> None:
    close = HEADERS.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    answer, _ = run_async(exchange(HEADERS, b"ab", 0.8, b"cd", 0.8, close, b"efgh"))
    assert answer.count(b"200 OK") == 2 and answer.endswith(b"efgh")
