"""A service in a process of its own, and what people do on its page, for the tests of the page."""

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

SECONDS = 120  # a sleep gives way to everything else, on a busy machine for long

OpenPage = Callable[..., "Page"]


@dataclass
class Service:
    """`siesta serve` on a port of this machine."""

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
        """A request of another client."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            text = response.read()
        return json.loads(text) if text.startswith((b"{", b"[")) else None

    def wake(self) -> None:
        """Waits until it does not sleep any more, and makes it so."""
        end = time.monotonic() + 60
        while self.call("GET", "v1/sleep")["running"] and time.monotonic() < end:
            with suppress(OSError):  # it woke up by itself
                self.call("DELETE", "v1/sleep")
            time.sleep(0.2)

    def empty(self) -> None:
        """As if nothing had ever been taught."""
        self.wake()
        end = time.monotonic() + SECONDS
        while (classes := self.call("GET", "v1/classes")["classes"]) and time.monotonic() < end:
            try:
                self.call("DELETE", f"v1/classes/{classes[0]['id']}")
            except urllib.error.HTTPError as error:
                if error.code != 409:  # whose sleep has ended, but not let go yet
                    raise
                time.sleep(0.1)
        assert not classes

    def teach(self, pictures: list[Path], label: str) -> None:
        """Teaches as another client does."""
        edge = "----------------siesta"
        parts = [f'--{edge}\r\nContent-Disposition: form-data; name="label"\r\n\r\n{label}\r\n'.encode()]
        for picture in pictures:
            head = f'--{edge}\r\nContent-Disposition: form-data; name="image"; filename="{picture.name}"\r\n'
            parts.append(head.encode() + b"Content-Type: image/png\r\n\r\n" + picture.read_bytes() + b"\r\n")
        body = b"".join(parts) + f"--{edge}--\r\n".encode()
        headers = {"content-type": f"multipart/form-data; boundary={edge}"}
        with urllib.request.urlopen(urllib.request.Request(self.url + "v1/learn", body, headers), timeout=60):
            pass


def free_port() -> int:
    """One that nobody listens at just now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def until(page: Page, expression: str) -> None:
    """Waits for something to be true in the page; Playwright's own way is forbidden by the page's policy."""
    end = time.monotonic() + SECONDS
    while not page.evaluate(f"() => Boolean({expression})"):
        assert time.monotonic() < end, f"never true: {expression}"
        page.wait_for_timeout(50)


def card(page: Page, label: str) -> Locator:
    """The card of a class, by its name."""
    return page.locator("#classes > li").filter(
        has=page.get_by_role("textbox", name=f"Name of class {label}", exact=True)
    )


def teach(page: Page, label: str, pictures: list[Path]) -> None:
    """Names a class and chooses files for it, as people do."""
    page.get_by_label("Find a class, or name a new one").fill(label)
    page.get_by_role("button", name="Add", exact=True).click()
    card(page, label).locator("input[type=file]").set_input_files(pictures)
    card(page, label).locator(".say[data-kind=good]").wait_for()
