"""Kill and SIGTERM under load, across server, worker and store: nothing acknowledged or accepted is lost."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path

from siesta import Siesta
from siesta.service.client import Client
from tests.service.conftest import StartServer
from tests.service.server_process import (
    COLOURS,
    ServerProcess,
    make_image,
    multipart_body,
    read_response,
    send_half,
)


class LearningClients:
    """Clients that learn images as fast as they can, and the samples that were acknowledged."""

    def __init__(self, server: ServerProcess, count: int = 4) -> None:
        self.acknowledged: dict[int, str] = {}
        self._server = server
        self._threads = [threading.Thread(target=self._learn, args=(number,)) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def _learn(self, number: int) -> None:
        with Client(self._server.url) as client:
            for count in range(10_000):
                label = list(COLOURS)[(number + count) % 3]
                try:
                    (sample_id,) = client.learn(make_image(label, 10_000 * number + count), label)
                except Exception:
                    return
                self.acknowledged[sample_id] = label

    def wait_for(self, samples: int) -> None:
        end = time.monotonic() + 60
        while len(self.acknowledged) < samples and time.monotonic() < end:
            time.sleep(0.01)
        assert len(self.acknowledged) >= samples

    def join(self) -> None:
        for thread in self._threads:
            thread.join(60)


def assert_stored(path: Path, acknowledged: dict[int, str]) -> None:
    with Siesta.open(path, read_only=True) as learner:
        assert {sample_id: learner.label_of(sample_id) for sample_id in acknowledged} == acknowledged


def test_a_kill_loses_nothing_that_was_acknowledged(start_server: StartServer) -> None:
    server = start_server()
    clients = LearningClients(server)
    clients.wait_for(60)
    server.stop(signal.SIGKILL)
    clients.join()
    assert_stored(server.path, clients.acknowledged)
    restarted = start_server(path=server.path)
    with restarted.client() as client:
        assert client.predict(make_image("green", 5)).label == "green"
        assert client.info().samples.stored >= len(clients.acknowledged)


def test_sigterm_finishes_what_was_accepted(start_server: StartServer) -> None:
    server = start_server()
    with server.client() as client:
        client.learn(make_image("red"), "red")
    body, content_type = multipart_body(("image", make_image("blue")), ("label", "blue"))
    accepted = send_half(server, "/v1/learn", body, content_type)
    clients = LearningClients(server)
    listener = server.client()
    events = listener.events()
    next(events)
    clients.wait_for(10)
    server.process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert server.process.poll() is None, "it waits for the request that it has accepted"
    accepted.sendall(body[len(body) // 2 :])
    status, response = read_response(accepted)
    assert status == 200
    accepted.close()
    assert server.process.wait(30) == 0
    clients.join()
    list(events)  # the stream ends
    listener.close()
    (sample_id,) = json.loads(response)["ids"]
    assert_stored(server.path, {**clients.acknowledged, sample_id: "blue"})
    assert "The service has stopped" in server.output() and "Traceback" not in server.output()
