"""Queues of events: nobody waits for a receiver, events stay in order, and the newest are kept while it is away."""

from __future__ import annotations

import logging
import time

import pytest

from siesta.service.events import Event
from siesta.service.events.sink import MOST_QUEUED
from tests.service.events.receivers import RecordingSink, wait_until


def event(number: int) -> Event:
    return Event("learned", "birds", {"number": number})


def numbers(sink: RecordingSink) -> list[int]:
    return [each.data["number"] for each in sink.events]


def test_events_wait_in_order_while_the_receiver_is_away(caplog: pytest.LogCaptureFixture) -> None:
    sink = RecordingSink()
    sink.away = True
    sink.start()
    for number in range(5):
        sink.put(event(number))
    wait_until(lambda: caplog.records, "a warning")
    time.sleep(0.1)
    assert len(caplog.records) == 1, "one warning for one absence"
    sink.away = False
    wait_until(lambda: len(sink.events) == 5, "the delivery")
    sink.close()
    assert numbers(sink) == [0, 1, 2, 3, 4]


def test_a_full_queue_drops_the_oldest(caplog: pytest.LogCaptureFixture) -> None:
    sink = RecordingSink()
    for number in range(MOST_QUEUED + 3):
        sink.put(event(number))
    assert sink.dropped == 3
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    sink.start()
    wait_until(lambda: len(sink.events) == MOST_QUEUED, "the delivery")
    sink.close()
    assert numbers(sink)[:2] == [3, 4]


def test_an_error_in_a_receiver_drops_its_event_only(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(RecordingSink):
        def deliver(self, event: Event) -> None:
            if event.data["number"] == 0:
                raise ZeroDivisionError
            super().deliver(event)

    sink = Broken()
    sink.put(event(0))
    sink.put(event(1))
    sink.start()
    sink.close()
    assert numbers(sink) == [1]
    assert "failed and is dropped" in caplog.text


def test_a_receiver_that_stays_away_does_not_keep_the_service_from_stopping() -> None:
    sink = RecordingSink()
    sink.away = True
    sink.start()
    sink.put(event(0))
    begin = time.monotonic()
    sink.close()
    assert time.monotonic() - begin < 10
    assert sink.events == []
