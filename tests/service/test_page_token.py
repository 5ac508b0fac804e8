"""The page of a service that needs a token: typed in or from the address, and with the scope `ask` only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from starlette.datastructures import Headers

from siesta import Siesta
from siesta.service.auth import cookie_name
from siesta.service.tokens import TokenStore
from tests.service.page_support import TIMEOUT, PageService, free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def locked(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageService]:
    """A service that other machines can reach."""
    path = tmp_path_factory.mktemp("locked") / "birds.siesta"
    Siesta.create(path, memory="1MB", image_size=64).close()
    service = PageService(path, free_port(), ("--host", "0.0.0.0"))
    service.start()
    yield service
    service.stop()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(TIMEOUT * 1000)
    yield context.new_page()
    context.close()


def test_without_a_token_the_page_asks_for_one_and_refuses_a_wrong_one(locked: PageService, page: Page) -> None:
    page.goto(locked.url)
    page.get_by_label("This server asks for its token").fill("wrong")
    page.get_by_role("button", name="Enter").click()
    page.locator("#token-message[data-kind=bad]").wait_for()
    assert page.locator("#connection").inner_text() == "Locked"
    assert not page.locator("main").is_visible()  # nothing in it works without a token
    page.get_by_label("This server asks for its token").fill(TokenStore(locked.path).new("teach"))
    page.get_by_role("button", name="Enter").click()
    page.locator("#connection[data-state=awake]").wait_for()
    assert not page.locator("#token-form").is_visible()
    assert page.locator("main").is_visible()
    page.reload()
    page.locator("#connection[data-state=awake]").wait_for()


def test_a_token_in_the_address_is_used_and_removed(locked: PageService, page: Page) -> None:
    page.goto(f"{locked.url}#token={TokenStore(locked.path).new('teach')}")
    page.locator("#connection[data-state=awake]").wait_for()
    assert page.url == locked.url
    assert page.get_by_role("button", name="Add", exact=True).is_visible()


def test_the_link_works_in_a_page_that_waits_for_a_token(locked: PageService, page: Page) -> None:
    page.goto(locked.url)
    page.locator("#token-form").wait_for()
    page.goto(f"{locked.url}#token={TokenStore(locked.path).new('teach')}")  # the same page, so nothing is loaded
    page.locator("#connection[data-state=awake]").wait_for()
    assert page.url == locked.url


def test_an_old_cookie_is_refused_once_and_a_token_that_has_to_wait_stays(locked: PageService, page: Page) -> None:
    name = cookie_name(Headers({"host": f"127.0.0.1:{locked.port}"}))
    page.context.add_cookies([{"name": name, "value": "revoked", "url": locked.url}])
    refused: list[str] = []
    page.on("response", lambda response: refused.extend([response.url] if response.status == 401 else []))
    page.goto(locked.url)
    page.locator("#token-form").wait_for()
    page.wait_for_timeout(500)
    assert refused == [f"{locked.url}v1/info"]
    problem = {"status": 429, "detail": "too many wrong tokens: wait a minute"}
    page.route("**/v1/session", lambda route: route.fulfill(status=429, json=problem))
    page.get_by_label("This server asks for its token").fill("a right one")
    page.get_by_role("button", name="Enter").click()
    page.locator("#token-message", has_text="Too many wrong tokens: wait a minute.").wait_for()
    assert page.get_by_label("This server asks for its token").input_value() == "a right one"
    page.route("**/v1/info", lambda route: route.fulfill(status=429, json=problem))
    page.reload()
    page.locator("#offline", has_text="Too many wrong tokens: wait a minute. Trying again").wait_for()


def test_with_the_scope_ask_teaching_is_not_offered(locked: PageService, page: Page) -> None:
    page.goto(f"{locked.url}#token={TokenStore(locked.path).new('ask')}")
    page.locator("#connection[data-state=awake]").wait_for()
    assert "may look and ask" in page.locator("#teach-hint").inner_text()
    for name in ("Add", "Sleep"):
        assert not page.get_by_role("button", name=name, exact=True).is_visible()
