"""What events are sent to: a real broker, a client of it, an HTTP server, and a sink that remembers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from siesta.service.events import Event
from siesta.service.events.sink import NotDelivered, Sink

__all__ = ["Broker", "HttpReceiver", "RecordingSink", "Subscriber", "http_receiver", "wait_until"]

_SECONDS = 30


def wait_until(condition: Callable[[], Any], what: str) -> None:
    end = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.02)


class RecordingSink(Sink):
    """Remembers events; it refuses all while it is away."""

    def __init__(self) -> None:
        super().__init__("test", first_pause=0.01, longest_pause=0.02)
        self.events: list[Event] = []
        self.away = False

    def deliver(self, event: Event) -> None:
        if self.away:
            raise NotDelivered("it is away")
        self.events.append(event)


class Broker:
    """Debian's mosquitto on loopback; without it tests skip, or fail if SIESTA_BROKER=required."""

    def __init__(self, folder: Path, password: str = "") -> None:
        program = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
        if program is None:
            skip_or_fail = pytest.fail if os.environ.get("SIESTA_BROKER") == "required" else pytest.skip
            skip_or_fail("mosquitto is not installed: apt-get install mosquitto")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._config = folder / "mosquitto.conf"
        lines = [f"listener {self.port} 127.0.0.1", f"allow_anonymous {'false' if password else 'true'}"]
        if password:
            passwords = folder / "passwords"
            passwords.touch(0o600)
            subprocess.run(["mosquitto_passwd", "-b", passwords, "anna", password], check=True, capture_output=True)
            lines += [f"password_file {passwords}", "user root"]
        self._config.write_text("\n".join([*lines, ""]))
        self._command = [str(program), "-c", str(self._config)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)
        wait_until(self._listens, "the start of the broker")

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None


class Subscriber:
    """A client that remembers all messages; retained ones, too."""

    def __init__(self, port: int, user: str = "", password: str = "") -> None:
        self.messages: list[tuple[str, bytes]] = []
        self._client = Client(CallbackAPIVersion.VERSION2)
        self._client.on_message = self._on_message
        if user:
            self._client.username_pw_set(user, password)
        self._client.connect("127.0.0.1", port)
        self._client.subscribe("#", 1)
        self._client.loop_start()

    def _on_message(self, _client: Client, _data: Any, message: MQTTMessage) -> None:
        self.messages.append((message.topic, bytes(message.payload)))

    def wait_for(self, topic: str, count: int = 1) -> list[bytes]:
        wait_until(lambda: len(self.of(topic)) >= count, f"message {count} on {topic}")
        return self.of(topic)

    def of(self, topic: str) -> list[bytes]:
        return [payload for name, payload in self.messages if name == topic]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@dataclass
class HttpReceiver:
    """An HTTP server that remembers requests, and answers with the statuses given, then with 204."""

    url: str = ""
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)


@contextmanager
def http_receiver(*statuses: int) -> Iterator[HttpReceiver]:
    receiver = HttpReceiver(statuses=list(statuses))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(receiver.statuses.pop(0) if receiver.statuses else 204)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield receiver
        server.shutdown()
        thread.join()
