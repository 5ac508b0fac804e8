"""Hostile clients of a service: two images of 49 megapixels at once, slow bodies, and headers that never end.

    python -m tests.faults.clients

Meanwhile other clients ask. The command adds a row to results/faults.jsonl: the most memory that the service took, and
the longest time in which it answered one of the others.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
from PIL import Image

from siesta import Siesta
from tests.faults.record import append
from tests.service.server_process import ServerProcess, make_image, multipart_body, read_response

__all__ = ["BODIES", "HEADERS", "Attack", "attack"]

BODIES, HEADERS = 70, 100
_SIDE = 7000
_SECONDS = 12.0  # for which the others ask
_PAUSE = 0.1


@dataclass(frozen=True)
class Attack:
    """What a service took.

    Attributes:
        memory: Resident bytes at the peak.
        seconds: Longest time of an answer to another client.
        answers: Statuses of these answers.
        large: Statuses of the answers to the two large images.
    """

    memory: int
    seconds: float
    answers: Counter[int]
    large: list[int]


def attack(path: Path) -> Attack:
    """Serve a new learner at `path` to hostile clients and to others."""
    with Siesta.create(path, memory="16MB") as learner:
        for label in ("red", "blue"):
            learner.learn_one(Image.open(io.BytesIO(make_image(label))), label)
    server = ServerProcess(path)
    try:
        content, kind = multipart_body(("image", _large_image()))
        large = [_sent(server, content, kind) for _ in range(2)]  # before slow bodies take all slots for images
        with _half_requests(server), ThreadPoolExecutor(2) as pool:
            statuses = pool.map(lambda connection: read_response(connection)[0], large)
            answers, slowest = _ask_for_a_while(server.url)
            done = list(statuses)
            return Attack(_peak(server.process.pid), slowest, answers, done)
    finally:
        server.stop()


def _large_image() -> bytes:
    data = io.BytesIO()
    Image.new("RGBA", (_SIDE, _SIDE), (20, 190, 20, 200)).save(data, "PNG", compress_level=1)
    return data.getvalue()


def _sent(server: ServerProcess, content: bytes, kind: str) -> socket.socket:
    """Send a whole request for a prediction; return the connection, on which its response will come."""
    connection = server.connect()
    connection.settimeout(120)
    head = f"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
    connection.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
    return connection


def _post(url: str, content: bytes, kind: str) -> int:
    return httpx.post(f"{url}/v1/predict", content=content, headers={"content-type": kind}, timeout=120).status_code


def _ask_for_a_while(url: str) -> tuple[Counter[int], float]:
    """Send requests with an image, which get 429 while too many wait, and without; return statuses and longest time."""
    content, kind = multipart_body(("image", make_image("red", 2)))
    answers: Counter[int] = Counter()
    slowest = 0.0
    end = time.monotonic() + _SECONDS
    asks: tuple[Callable[[], int], ...] = (
        lambda: _post(url, content, kind),
        lambda: httpx.get(f"{url}/v1/classes", timeout=120).status_code,
    )
    while time.monotonic() < end:
        for ask in asks:
            start = time.monotonic()
            answers[ask()] += 1
            slowest = max(slowest, time.monotonic() - start)
        time.sleep(_PAUSE)
    return answers, slowest


@contextlib.contextmanager
def _half_requests(server: ServerProcess) -> Iterator[None]:
    """Keep connections open whose bodies or headers are not complete."""
    head = "POST /v1/learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=edge\r\n"
    body = f"{head}Content-Length: 1000000\r\n\r\n--edge\r\n"
    connections: list[socket.socket] = []
    try:
        for text, number in ((body, BODIES), (head, HEADERS)):
            for _ in range(number):
                connections.append(server.connect())
                connections[-1].sendall(text.encode())
        yield
    finally:
        for connection in connections:
            connection.close()


def _peak(process: int) -> int:
    """Return the largest resident size that a process has had, on Linux."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def main() -> None:
    """Attack a service and add a row to the results."""
    with tempfile.TemporaryDirectory() as folder:
        result = attack(Path(folder) / "attacked.siesta")
    row = {
        "bench": "hostile clients",
        "config": {"bodies": BODIES, "headers": HEADERS, "side": _SIDE},
        "memory": result.memory,
        "seconds": round(result.seconds, 3),
        "requests": result.answers.total(),
        "answers": dict(result.answers),
        "large": result.large,
        "command": "python -m tests.faults.clients",
    }
    append(row)
    sys.stdout.write(json.dumps(row, indent=1) + "\n")


if __name__ == "__main__":
    main()
