"""Start and end of a service: what was accepted is finished, what was acknowledged survives a kill."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from siesta import Siesta
from siesta.cli.app import app
from siesta.service.client import Client, Refused
from tests.service.conftest import Serve
from tests.service.running import COLOURS, SIZE, Running, answer_on, half_sent, multipart, picture


class Teachers:
    """Some who teach as fast as they can, and remember what was acknowledged."""

    def __init__(self, running: Running, count: int = 4) -> None:
        self._running, self.acknowledged, self.refused = running, dict[int, str](), list[str]()
        self._threads = [threading.Thread(target=self._teach, args=(number,)) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def _teach(self, number: int) -> None:
        with Client(self._running.url) as client:
            for count in range(10_000):
                label = list(COLOURS)[(number + count) % 3]
                try:
                    (sample,) = client.learn(picture(label, 10_000 * number + count), label)
                except Exception as error:
                    self.refused.append(str(error))
                    return
                self.acknowledged[sample] = label

    def join(self) -> None:
        for thread in self._threads:
            thread.join(60)


def check_stored(path: Path, acknowledged: dict[int, str]) -> None:
    with Siesta.open(path, read_only=True) as learner:
        names = {record.id: record.label for record in learner.store.classes()}
        stored = {sample: names[learner.store.samples.class_of(sample)] for sample in acknowledged}
    assert stored == acknowledged


def test_a_kill_loses_nothing_that_was_acknowledged(serve: Serve) -> None:
    running = serve()
    teachers = Teachers(running)
    time.sleep(3)
    running.end(signal.SIGKILL)
    teachers.join()
    assert len(teachers.acknowledged) > 10
    check_stored(running.path, teachers.acknowledged)
    again = serve(path=running.path)
    with again.client() as client:
        assert client.predict(picture("green", 5)).label == "green"
        assert client.info().samples.stored >= len(teachers.acknowledged)


def test_sigterm_finishes_what_was_accepted(serve: Serve) -> None:
    running = serve()
    with running.client() as client:
        client.learn(picture("red"), "red")
    body, kind = multipart(("image", picture("blue")), ("label", "blue"))
    accepted = half_sent(running, "/v1/learn", body, kind)
    teachers = Teachers(running)
    listener = running.client()
    events = listener.events()
    next(events)
    time.sleep(1)
    running.process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert running.process.poll() is None, "it waits for the one it has accepted"
    accepted.sendall(body[len(body) // 2 :])
    status, answer = answer_on(accepted)
    assert status == 200
    accepted.close()
    assert running.process.wait(30) == 0
    teachers.join()
    assert list(events) is not None, "streams end"
    listener.close()
    (sample,) = json.loads(answer)["ids"]
    check_stored(running.path, {**teachers.acknowledged, sample: "blue"})
    assert "Good night" in running.said() and "Traceback" not in running.said()


def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    path = tmp_path / "a.siesta"
    Siesta.create(path, image_size=SIZE).close()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        wrong = [
            ([str(tmp_path / "none")], "there is no learner at"),
            ([str(path), "--port", str(port)], "cannot listen at 127.0.0.1"),
            ([str(path), "--host", "no such host"], "is no address to listen at"),
            ([str(path), "--timeout", "0"], "a limit is above zero"),
            ([str(path), "--timeout", "inf"], "above zero and has an end, not inf: seconds"),
            ([str(path), "--max-body", "much"], "is not a size"),
            ([str(path), "--port", "0", "--durability", "none"], "there is no durability 'none'"),
            ([str(path), "--tls-cert", "a.pem"], "TLS needs both files"),
            ([str(path), "--tls-cert", str(path), "--tls-key", str(path)], "are no certificate and its key"),
        ]
        for arguments, words in wrong:
            found = CliRunner().invoke(app, ["serve", *arguments])
            assert words in str(found.exception), arguments


def test_a_key_with_a_password_is_refused_in_words(tmp_path: Path) -> None:
    path, certificate, key = tmp_path / "a.siesta", tmp_path / "cert.pem", tmp_path / "key.pem"
    Siesta.create(path, image_size=SIZE).close()
    made = subprocess.run(
        [
            *("openssl", "req", "-x509", "-days", "2", "-newkey", "rsa:2048", "-subj", "/CN=localhost"),
            *("-passout", "pass:secret", "-keyout", key, "-out", certificate),
        ],
        capture_output=True,
    )
    if made.returncode:
        pytest.skip("openssl makes no certificate here")
    found = CliRunner().invoke(app, ["serve", str(path), "--tls-cert", str(certificate), "--tls-key", str(key)])
    assert "key.pem is encrypted: give a key without a password" in str(found.exception)


def test_a_learner_that_is_being_taught_is_not_served_twice(serve: Serve) -> None:
    running = serve()
    with pytest.raises(pytest.fail.Exception, match="is being taught by process"):
        Running(running.path)
    with running.client() as client:
        assert client.classes() == []
        with pytest.raises(Refused, match="not taught anything"):
            client.predict(picture("red"))
