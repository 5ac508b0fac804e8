"""`siesta serve` in a process of its own on loopback, and requests to send to it."""

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

IMAGE_SIZE = 32
COLOURS = {"red": (190, 20, 20), "green": (20, 190, 20), "blue": (20, 20, 190)}


def make_image(label: str, number: int = 0, size: tuple[int, int] = (40, 48)) -> bytes:
    """Return a noisy PNG image of one colour; different numbers give different images."""
    noise = np.random.default_rng(number).integers(0, 60, (*size, 3))
    data = io.BytesIO()
    Image.fromarray((np.array(COLOURS[label]) + noise).astype(np.uint8)).save(data, "PNG")
    return data.getvalue()


class ServerProcess:
    """`siesta serve` with a learner on a free port."""

    command = "serve"
    announcement = "Open"

    def __init__(self, path: Path, *options: str, port: int = 0) -> None:
        self.path = path
        self.log_file = path.with_suffix(".log")
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "siesta", self.command, str(path), "--port", str(port), *options],
                stdout=log,
                stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        self.url = self._wait_for_url()

    def _wait_for_url(self) -> str:
        end = time.monotonic() + 90
        while time.monotonic() < end:
            found = re.search(self.announcement + r" (https?)://[^\s/]+:(\d+)", self.output())
            if found:
                return f"{found[1]}://127.0.0.1:{found[2]}"
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        pytest.fail(f"the service did not start: {self.output()}")

    def output(self) -> str:
        return self.log_file.read_text("utf-8")

    def client(self, **options: Any) -> Client:
        return Client(self.url, **options)

    def connect(self) -> socket.socket:
        parts = urlsplit(self.url)
        return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60)


class SleeperProcess(ServerProcess):
    """`siesta sleeper` with a folder on a free port."""

    command = "sleeper"
    announcement = "Sleeping for others at"

    def packs(self) -> list[Path]:
        """Return the folders of the packs that it has."""
        return list((self.path / "packs").iterdir())


def multipart_body(*fields: tuple[str, bytes | str]) -> tuple[bytes, str]:
    """Return a multipart body and its content type; fields of bytes are files."""
    parts = []
    for name, value in fields:
        file_name = '; filename="a.png"' if isinstance(value, bytes) else ""
        content = value if isinstance(value, bytes) else value.encode()
        head = f'--edge\r\nContent-Disposition: form-data; name="{name}"{file_name}\r\n\r\n'
        parts.append(head.encode() + content + b"\r\n")
    return b"".join(parts) + b"--edge--\r\n", "multipart/form-data; boundary=edge"


def send_half(server: ServerProcess, path: str, body: bytes, content_type: str) -> socket.socket:
    """Send a request up to half of its body and return the connection."""
    connection = server.connect()
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
    ]
    connection.sendall("\r\n".join([*lines, "", ""]).encode() + body[: len(body) // 2])
    time.sleep(0.3)  # for the server to read it
    return connection


def read_response(connection: socket.socket) -> tuple[int, bytes]:
    """Return the status and the body of the response on a connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    assert found is not None
    while len(body) < int(found[1]):
        body += connection.recv(65536)
    return int(head.split()[1]), body
