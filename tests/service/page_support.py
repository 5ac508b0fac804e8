"""A service that can be restarted on its port, and actions of users on its page, for the tests of the page."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

TIMEOUT = 120  # seconds; a sleep has low priority and may wait long on a busy machine

OpenPage = Callable[..., "Page"]


@dataclass
class PageService:
    """`siesta serve` on a port of this machine; it can be stopped and started again."""

    path: Path
    port: int
    options: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        command = [sys.executable, "-m", "siesta", "serve", str(self.path), "--port", str(self.port), *self.options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            try:
                self.call("GET", "readyz")
            except OSError:
                time.sleep(0.1)
            else:
                return
        pytest.fail(f"the service did not start (exit code {self.process.poll()})")

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)
            self.process = None

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Send a request as another client and return the JSON of the response."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            text = response.read()
        return json.loads(text) if text.startswith((b"{", b"[")) else None

    def wake(self) -> None:
        """End the sleep, if there is one, and wait for its end."""
        end = time.monotonic() + 60
        while self.call("GET", "v1/sleep")["running"] and time.monotonic() < end:
            with suppress(OSError):  # it has ended meanwhile
                self.call("DELETE", "v1/sleep")
            time.sleep(0.2)

    def empty(self) -> None:
        """Forget all classes."""
        self.wake()
        end = time.monotonic() + TIMEOUT
        while (classes := self.call("GET", "v1/classes")["classes"]) and time.monotonic() < end:
            try:
                self.call("DELETE", f"v1/classes/{classes[0]['id']}")
            except urllib.error.HTTPError as error:
                if error.code != 409:  # the process of a sleep that has ended still holds its lock
                    raise
                time.sleep(0.1)
        assert not classes

    def teach(self, pictures: list[Path], label: str) -> None:
        """Learn pictures as another client."""
        boundary = "----------------siesta"
        parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="label"\r\n\r\n{label}\r\n'.encode()]
        for picture in pictures:
            head = f'--{boundary}\r\nContent-Disposition: form-data; name="image"; filename="{picture.name}"\r\n'
            parts.append(head.encode() + b"Content-Type: image/png\r\n\r\n" + picture.read_bytes() + b"\r\n")
        body = b"".join(parts) + f"--{boundary}--\r\n".encode()
        headers = {"content-type": f"multipart/form-data; boundary={boundary}"}
        with urllib.request.urlopen(urllib.request.Request(self.url + "v1/learn", body, headers), timeout=60):
            pass


def free_port() -> int:
    """Return a port that no process listens on at present."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def until(page: Page, expression: str) -> None:
    """Wait until an expression is true; the page's Content-Security-Policy forbids Playwright's own function for it."""
    end = time.monotonic() + TIMEOUT
    while not page.evaluate(f"() => Boolean({expression})"):
        assert time.monotonic() < end, f"not true in time: {expression}"
        page.wait_for_timeout(50)


def card(page: Page, label: str) -> Locator:
    """Return the card of a class."""
    return page.locator("#classes > li").filter(
        has=page.get_by_role("textbox", name=f"Name of class {label}", exact=True)
    )


def teach(page: Page, label: str, pictures: list[Path]) -> None:
    """Name a class and choose files for it."""
    page.get_by_label("Find a class, or name a new one").fill(label)
    page.get_by_role("button", name="Add", exact=True).click()
    card(page, label).locator("input[type=file]").set_input_files(pictures)
    card(page, label).locator(".message[data-kind=good]").wait_for()
