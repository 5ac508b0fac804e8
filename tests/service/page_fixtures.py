"""A browser and a service to look at with it, for the tests of the page: all of them share one of each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from siesta import Siesta
from tests.service.page_support import SECONDS, OpenPage, Service, free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = Path("/usr/bin/chromium")
SWITCHES = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"),
]


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
    service = Service(path, free_port())
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
        page.on("filechooser", lambda _: None)  # listening comes too late for a key that was pressed already
        page.goto(service.url)
        page.locator("#connection[data-state=awake], #connection[data-state=asleep]").wait_for()
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []
