"""A service in a process of its own, on loopback, and pictures to send to it."""

from __future__ import annotations

import io
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

from siesta.service.client import Client

SIZE = 32
COLOURS = {"red": (190, 20, 20), "green": (20, 190, 20), "blue": (20, 20, 190)}


def picture(label: str, number: int = 0, kind: str = "PNG", size: tuple[int, int] = (40, 48)) -> bytes:
    """A noisy picture of one colour, as a file; no two numbers are the same."""
    noise = np.random.default_rng(number).integers(0, 60, (*size, 3))
    data = io.BytesIO()
    Image.fromarray((np.array(COLOURS[label]) + noise).astype(np.uint8)).save(data, kind)
    return data.getvalue()


class Running:
    """`siesta serve` with a learner."""

    def __init__(self, path: Path, *options: str) -> None:
        self.path, self.log = path, path.with_suffix(".log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "siesta", "serve", str(path), "--port", "0", *options],
                stdout=log,
                stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        self.url = self._address()

    def _address(self) -> str:
        end = time.monotonic() + 90
        while time.monotonic() < end:
            found = re.search(r"Open (https?)://[^\s/]+:(\d+)", self.said())
            if found:
                return f"{found[1]}://127.0.0.1:{found[2]}"
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        pytest.fail(f"it did not start: {self.said()}")

    def said(self) -> str:
        return self.log.read_text("utf-8")

    def client(self, **more: Any) -> Client:
        return Client(self.url, **more)

    def connect(self) -> socket.socket:
        parts = urlsplit(self.url)
        return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Sends a signal; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60)


def multipart(*fields: tuple[str, bytes | str]) -> tuple[bytes, str]:
    """A body by hand, and its content type; bytes are files."""
    parts = []
    for name, value in fields:
        more = '; filename="a.png"' if isinstance(value, bytes) else ""
        data = value if isinstance(value, bytes) else value.encode()
        head = f'--edge\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'
        parts.append(head.encode() + data + b"\r\n")
    return b"".join(parts) + b"--edge--\r\n", "multipart/form-data; boundary=edge"


def half_sent(service: Running, path: str, body: bytes, kind: str) -> socket.socket:
    """A connection on which half of a request was sent."""
    connection = service.connect()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body[: len(body) // 2])
    time.sleep(0.3)
    return connection


def answer_on(connection: socket.socket) -> tuple[int, bytes]:
    """Status and body of the answer on a connection that ends after it, or that has sent it all."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(re.search(rb"content-length: (\d+)", head, re.IGNORECASE)[1])  # type: ignore[index]
    while len(body) < length:
        body += connection.recv(65536)
    return int(head.split()[1]), body
