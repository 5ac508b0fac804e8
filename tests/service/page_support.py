"""A service in a process of its own and a browser to look at it with, for the tests of the page."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from siesta import Siesta

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

CHROMIUM = Path("/usr/bin/chromium")
SWITCHES = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"),
]
SECONDS = 30  # that a page is given for anything: the machine may be busy

OpenPage = Callable[..., "Page"]


@dataclass
class Service:
    """`siesta serve` on a port of this machine."""

    path: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        command = [sys.executable, "-m", "siesta", "serve", str(self.path), "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
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
        for known in self.call("GET", "v1/classes")["classes"]:
            self.call("DELETE", f"v1/classes/{known['id']}")

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


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's chromium; skips without it, or fails where SIESTA_BROWSER=required."""
    absent = pytest.fail if os.environ.get("SIESTA_BROWSER") == "required" else pytest.skip
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        absent("the page is tested with playwright: pip install playwright")
    if not CHROMIUM.exists():
        absent(f"the page is tested with {CHROMIUM}: apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(CHROMIUM), args=SWITCHES)
        yield started
        started.close()


@pytest.fixture(scope="session")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service of a small learner for all tests; not begun where there is no browser."""
    path = tmp_path_factory.mktemp("page") / "birds.siesta"
    Siesta.create(path, memory="1MB", image_size=64).close()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    service = Service(path, port)
    service.start()
    yield service
    service.wake()
    service.stop()


@pytest.fixture
def service(served: Service) -> Service:
    """It, awake and with nothing in its memory."""
    served.empty()
    return served


@pytest.fixture
def open_page(browser: Browser, service: Service) -> Iterator[OpenPage]:
    """Opens pages of the service; afterwards none may have complained, or asked anybody else for anything."""
    complaints: list[str] = []
    contexts: list[BrowserContext] = []
    expected = ["the server responded with a status of 4"]  # the page says refusals in words; browsers log them too

    def complain(kind: str, text: str) -> None:
        if kind in ("error", "warning", "outside") and not any(words in text for words in expected):
            complaints.append(f"{kind}: {text}")

    def asks(url: str) -> None:
        if not url.startswith((service.url, "blob:")):
            complain("outside", url)

    def open_one(width: int = 1280, height: int = 900, expect: str | None = None, **options: Any) -> Page:
        expected.extend([expect] if expect else [])
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(SECONDS * 1000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complain(message.type, message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asks(request.url))
        page.goto(service.url)
        page.locator("#connection[data-state=awake], #connection[data-state=asleep]").wait_for()
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


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
