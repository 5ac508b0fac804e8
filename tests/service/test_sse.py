"""Event streams: what they send, how many may be open, and when they end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from starlette.types import Message

from siesta.service.client import Client
from siesta.service.problems import Problem
from siesta.service.schemas import ChangedEvent, SleepStatusResponse
from siesta.service.sse import EventStreams
from tests.service.event_loop import run_async
from tests.service.server_process import ServerProcess, make_image


def make_streams(max_streams: int = 100, closing: asyncio.Event | None = None) -> EventStreams:
    def snapshot() -> dict[str, Any]:
        return {"changed": ChangedEvent(revision=1, generation=0)}

    return EventStreams(snapshot, closing or asyncio.Event(), max_streams)


async def read_stream(stream: Any, until: Callable[[Message], bool] = lambda _: False) -> list[Message]:
    """Return all messages of a stream up to the one at which the client disconnects."""
    messages: list[Message] = []
    disconnected = asyncio.Event()

    async def receive() -> Message:
        await disconnected.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        messages.append(message)
        if until(message):
            disconnected.set()

    await stream({"type": "http", "asgi": {"spec_version": "2.3"}}, receive, send)
    return messages


def run(coroutine: Any) -> Any:
    return run_async(asyncio.wait_for(coroutine, 30))


def test_streams_count_from_their_acceptance_until_their_end() -> None:
    async def listen() -> None:
        streams = make_streams(max_streams=2)
        accepted = [streams.open(lambda: True) for _ in range(2)]
        with pytest.raises(Problem, match="2 event streams are open already") as caught:
            streams.open(lambda: True)
        assert caught.value.status == 429
        await read_stream(accepted[0], until=lambda message: message["type"] == "http.response.start")
        await read_stream(streams.open(lambda: True), until=lambda message: b"changed" in message.get("body", b""))
        streams.open(lambda: True)

    run(listen())


def test_a_stream_ends_when_its_client_is_not_allowed_any_more() -> None:
    allowed = iter((True, True, False))
    messages = run(read_stream(make_streams().open(lambda: next(allowed))))
    assert b"".join(message.get("body", b"") for message in messages).count(b"event: changed") == 1
    assert messages[-1]["more_body"] is False


def test_a_stream_ends_when_the_service_closes() -> None:
    async def listen() -> list[Message]:
        closing = asyncio.Event()
        reading = asyncio.create_task(read_stream(make_streams(closing=closing).open(lambda: True)))
        await asyncio.sleep(0.1)
        closing.set()
        return await reading

    assert run(listen())[-1]["more_body"] is False


def test_a_client_is_told_the_status_first_and_every_change_after_it(taught: Client, server: ServerProcess) -> None:
    with server.client() as listener:
        events = listener.events()
        assert {type(next(events)) for _ in range(2)} == {SleepStatusResponse, ChangedEvent}
        red = taught.classes()[0]
        taught.learn(make_image("red", 7), "red")
        assert isinstance(next(events), ChangedEvent)
        taught.rename(red.id, "scarlet")
        assert isinstance(next(events), ChangedEvent)
