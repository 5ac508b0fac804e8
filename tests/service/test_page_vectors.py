"""The page of a learner of vectors: it says so, and offers nothing that is for pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from siesta import Siesta
from tests.service.page_support import PageService, free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture
def vectors_service(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageService]:
    path = tmp_path_factory.mktemp("vectors") / "topics.siesta"
    with Siesta.create(path, memory="1MB", features=3) as learner:
        learner.learn_many([[1, 0, 0], [0, 1, 0]], ["red", "green"])
    service = PageService(path, free_port())
    service.start()
    yield service
    service.stop()


def test_the_page_says_that_its_learner_takes_vectors(browser: Browser, vectors_service: PageService) -> None:
    from playwright.sync_api import expect

    errors: list[str] = []
    context = browser.new_context()
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(vectors_service.url)
    expect(page.locator("#takes-vectors")).to_contain_text("takes vectors of 3 numbers instead of pictures")
    expect(page.locator("#classes .card")).to_have_count(2)
    for hidden in ("#ask", "#new-class", "#teach-hint", "#classes .pick >> nth=0", "nav a[href='#ask']"):
        expect(page.locator(hidden)).to_be_hidden()
    expect(page.locator("#sleep-go")).to_be_visible()
    context.close()
    assert errors == []
