"""Streams of events: so many at a time, counted from the moment they are accepted until they are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from starlette.types import Message

from siesta.service import events
from siesta.service.events import Streams
from siesta.service.problems import Problem
from siesta.service.shapes import Changed


def streams(closing: asyncio.Event) -> Streams:
    return Streams(lambda: {"changed": Changed(revision=1, generation=0)}, closing)


async def sent(stream: Any, until: Callable[[Message], bool] = lambda _: False) -> list[Message]:
    """All that it sends to one who goes away at a message."""
    messages: list[Message] = []
    gone = asyncio.Event()

    async def receive() -> Message:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        messages.append(message)
        if until(message):
            gone.set()

    await stream({"type": "http", "asgi": {"spec_version": "2.3"}}, receive, send)
    return messages


def test_they_are_counted_when_they_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_MOST", 2)

    async def listen() -> None:
        made = streams(asyncio.Event())
        accepted = [made.listen(lambda: True) for _ in range(2)]
        with pytest.raises(Problem, match="2 listen already") as caught:
            made.listen(lambda: True)
        assert caught.value.status == 429
        await sent(accepted[0], until=lambda message: message["type"] == "http.response.start")
        await sent(made.listen(lambda: True), until=lambda message: b"changed" in message.get("body", b""))
        made.listen(lambda: True)

    asyncio.run(asyncio.wait_for(listen(), 30))


def test_one_ends_when_it_is_not_allowed_any_more() -> None:
    asked = iter((True, True, False))
    messages = asyncio.run(asyncio.wait_for(sent(streams(asyncio.Event()).listen(lambda: next(asked))), 30))
    assert b"".join(message.get("body", b"") for message in messages).count(b"event: changed") == 1
    assert messages[-1]["more_body"] is False
