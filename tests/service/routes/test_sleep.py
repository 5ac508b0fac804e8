"""Sleep over HTTP: prediction and learning go on, streams follow it, and earlier weights can be activated."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from siesta.service.client import Client, RequestRefused
from siesta.service.schemas import ChangedEvent, SleepStatusResponse
from tests.service.conftest import Send, StartServer
from tests.service.server_process import ServerProcess, make_image


@pytest.fixture(scope="module")
def sleeping_server(start_server: StartServer) -> ServerProcess:
    """A server whose learner knows red and blue, with held-out samples of both."""
    server = start_server()
    with server.client() as client:
        for label in ("red", "blue"):
            client.learn([make_image(label, number) for number in range(24)], label)
    return server


@pytest.fixture
def client(sleeping_server: ServerProcess) -> Iterator[Client]:
    with sleeping_server.client() as client:
        yield client


def wait_until_done(client: Client) -> SleepStatusResponse:
    end = time.monotonic() + 90
    while (status := client.sleep_status()).running and time.monotonic() < end:
        time.sleep(0.05)
    return status


def test_prediction_and_learning_go_on_and_the_new_weights_are_activated(
    client: Client, sleeping_server: ServerProcess
) -> None:
    with sleeping_server.client() as listener:
        events = listener.events()
        assert any(isinstance(event, SleepStatusResponse) for event in (next(events), next(events)))
        assert client.sleep(updates=256).running
        with pytest.raises(RequestRefused, match=r"colours.siesta is asleep already") as caught:
            client.sleep(seconds=1)
        assert caught.value.status == 409
        predicted = 0
        while client.sleep_status().running:
            assert client.predict(make_image("blue", 99)).label == "blue"
            client.learn(make_image("red", 1000 + predicted), "red")
            predicted += 1
            time.sleep(0.05)  # the sleep has low priority
        assert predicted > 0
        seen = []
        for event in events:
            seen.append(event)
            if isinstance(event, ChangedEvent) and event.generation == 1:
                break
    assert any(isinstance(event, SleepStatusResponse) and event.progress is not None for event in seen)
    status = client.sleep_status()
    assert status.state == "done" and status.report is not None
    assert (status.report.updates, status.report.generation) == (256, 1)
    assert 4 <= status.report.held_out <= 7  # more where "red" was learned again before the sleep had begun
    assert status.report.accuracy_before is not None and status.report.accuracy_after is not None
    info = client.info()
    assert (info.generation, info.held_out.samples) == (1, status.report.held_out)
    assert [report.generation for report in info.sleeps] == [1]
    assert info.held_out.interval is not None and info.held_out.optimistic and info.held_out.least_error_rate is None
    assert status.report.interval_after == info.held_out.interval
    with pytest.raises(RequestRefused, match="held-out samples that decided nothing") as refused:
        client.predict(make_image("blue", 98), error_rate=0.2)
    assert refused.value.status == 409


def test_an_earlier_generation_can_be_activated(client: Client) -> None:
    if client.info().generation == 0:
        client.sleep(updates=64)
        wait_until_done(client)
    generations = client.use(0)
    assert [(generation.number, generation.in_use) for generation in generations] == [(0, True), (1, False)]
    assert client.generations() == generations and client.info().generation == 0
    assert generations[1].report is not None and generations[1].report.policy == "balanced_uniform"
    with pytest.raises(RequestRefused, match="no generation 5"):
        client.use(5)


def test_a_sleep_without_a_budget_ends_by_itself(client: Client) -> None:
    assert client.info().sleep_need.most_updates > 0
    client.sleep()
    status = wait_until_done(client)
    assert status.state == "done" and status.report is not None
    assert (status.report.ended, status.report.rounds, status.report.interrupted) == ("passes", 1, False)
    assert status.progress is not None and status.progress.round == 1
    need = client.info().sleep_need
    assert not need.due and need.words.startswith("not due: 0 new classes") and need.most_seconds is not None


def test_a_sleep_can_be_ended_and_refuses_changes_until_then(client: Client) -> None:
    client.sleep(seconds=60, policy="uniform")
    red = client.classes()[0]
    for request in (lambda: client.forget(red.id), lambda: client.rename(red.id, "pink"), lambda: client.use(0)):
        with pytest.raises(RequestRefused, match="asleep") as caught:
            request()
        assert caught.value.status == 409
    client.wake()
    status = wait_until_done(client)
    assert status.state == "done" and status.report is not None and status.report.interrupted
    assert client.rename(red.id, "pink").label == "pink"
    client.rename(red.id, "red")


def test_without_samples_there_is_nothing_to_rehearse(send: Send) -> None:
    response = send("POST", "/v1/sleep", json={"seconds": 5})
    assert response.status_code == 409 and "no samples are stored" in response.json()["detail"]
    assert send("DELETE", "/v1/sleep").status_code == 409
