"""Sleep over HTTP: asking and teaching go on, all who listen see it, and weights can be gone back to."""

from __future__ import annotations

import time

import pytest

from siesta.service.client import Client, Refused
from siesta.service.shapes import Changed, SleepShape
from tests.service.running import Running, picture


def wait_until_done(client: Client, seconds: float = 90) -> SleepShape:
    end = time.monotonic() + seconds
    while (status := client.sleep_status()).running and time.monotonic() < end:
        time.sleep(0.1)
    return status


def test_a_sleep_is_followed_while_it_answers_and_its_weights_are_taken_over(client: Client, running: Running) -> None:
    for label in ("red", "blue"):
        client.learn([picture(label, number) for number in range(24)], label)
    with running.client() as listener:
        events = listener.events()
        first = [next(events), next(events)]
        assert any(isinstance(event, SleepShape) for event in first)
        begun = client.sleep(updates=512)
        assert begun.running
        with pytest.raises(Refused, match=r"colours.siesta is asleep already") as caught:
            client.sleep(seconds=1)
        assert caught.value.status == 409
        asked = 0
        while client.sleep_status().running:
            assert client.predict(picture("blue", 99)).label == "blue"
            client.learn(picture("red", 1000 + asked), "red")
            asked += 1
        assert asked > 0
        status = client.sleep_status()
        assert status.state == "done" and status.report is not None
        assert (status.report.updates, status.report.generation, status.report.held_out) == (512, 1, 4)
        assert status.report.accuracy_before is not None and status.report.accuracy_after is not None
        seen = []
        for event in events:
            seen.append(event)
            if isinstance(event, Changed) and event.generation == 1:
                break
    assert any(isinstance(event, SleepShape) and event.progress is not None for event in seen)
    info = client.info()
    assert (info.generation, info.held_out.samples) == (1, 4)
    assert [report.generation for report in info.sleeps] == [1]
    assert client.predict(picture("blue", 98), error_rate=0.2).top[0].label == "blue"
    kept = client.use(0)
    assert [(some.number, some.in_use) for some in kept] == [(0, True), (1, False)]
    assert client.generations() == kept and client.info().generation == 0
    assert kept[1].report is not None and kept[1].report.policy == "balanced_uniform"
    with pytest.raises(Refused, match="no generation 5"):
        client.use(5)


def test_it_can_be_woken_up_and_refuses_changes_meanwhile(taught: Client) -> None:
    taught.sleep(seconds=60, policy="uniform")
    red = taught.classes()[0]
    for work in (lambda: taught.forget(red.id), lambda: taught.rename(red.id, "pink"), lambda: taught.use(0)):
        with pytest.raises(Refused, match="asleep, or being changed") as caught:
            work()
        assert caught.value.status == 409
    taught.wake()
    status = wait_until_done(taught)
    assert status.state == "done" and status.report is not None and status.report.interrupted
    assert taught.rename(red.id, "pink").label == "pink"


def test_with_nothing_to_rehearse_it_does_not_sleep(client: Client) -> None:
    with pytest.raises(Refused, match="nothing to sleep on: teach something") as caught:
        client.sleep(seconds=5)
    assert caught.value.status == 409
