"""Fixtures for the tests of the page, which share one browser and one service."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from siesta import Siesta
from tests.service.page_support import TIMEOUT, OpenPage, PageService, free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = Path("/usr/bin/chromium")
CHROMIUM_OPTIONS = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"),
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Debian's chromium; without it, skip, or fail if SIESTA_BROWSER=required."""
    skip_or_fail = pytest.fail if os.environ.get("SIESTA_BROWSER") == "required" else pytest.skip
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        skip_or_fail("the page is tested with playwright: pip install playwright")
    if not CHROMIUM.exists():
        skip_or_fail(f"the page is tested with {CHROMIUM}: apt-get install chromium")
    expect.set_options(timeout=TIMEOUT * 1000)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=CHROMIUM_OPTIONS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageService]:
    """Start one service of a small learner for all tests, unless there is no browser."""
    path = tmp_path_factory.mktemp("page") / "birds.siesta"
    Siesta.create(path, memory="1MB", image_size=64).close()
    service = PageService(path, free_port())
    service.start()
    yield service
    service.wake()
    service.stop()


@pytest.fixture
def service(served: PageService) -> PageService:
    """The shared service, awake and with an empty learner."""
    served.empty()
    return served


@pytest.fixture
def open_page(browser: Browser, service: PageService) -> Iterator[OpenPage]:
    """Open pages of the service; at the end, none may have logged an error or requested anything from elsewhere."""
    errors: list[str] = []
    contexts: list[BrowserContext] = []
    ignored = ["the server responded with a status of 4"]  # browsers log refused requests, which the page shows

    def record(kind: str, text: str) -> None:
        if kind in ("error", "warning", "outside") and not any(message in text for message in ignored):
            errors.append(f"{kind}: {text}")

    def check_url(url: str) -> None:
        if not url.startswith((service.url, "blob:")):
            record("outside", url)

    def open_one(width: int = 1280, height: int = 900, ignore: str | None = None, **options: Any) -> Page:
        ignored.extend([ignore] if ignore else [])
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(TIMEOUT * 1000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: record(message.type, message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: check_url(request.url))
        page.on("filechooser", lambda _: None)  # a listener that is added later misses a key press
        page.goto(service.url)
        page.locator("#connection[data-state=awake], #connection[data-state=asleep]").wait_for()
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert errors == []
