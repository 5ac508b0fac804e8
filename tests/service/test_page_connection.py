"""Connection of the page across its modules: changes by other clients, a lost service, and its security policy."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest

from tests.conftest import MakePictures
from tests.service.page_support import OpenPage, PageService, card, teach, until


@pytest.fixture
def pictures(tmp_path: Path, make_pictures: MakePictures) -> dict[str, list[Path]]:
    folder = make_pictures(tmp_path / "pictures", ["cup", "leaf"], each=4)
    return {label: sorted((folder / label).iterdir()) for label in ("cup", "leaf")}


def test_the_content_security_policy_allows_own_files_only(service: PageService) -> None:
    with urllib.request.urlopen(service.url, timeout=30) as response:
        policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_changes_by_other_clients_are_shown_at_once_and_after_a_reload(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]]
) -> None:
    page, other = open_page(), open_page()
    teach(page, "cup", pictures["cup"])
    card(other, "cup").wait_for()
    service.teach(pictures["leaf"], "leaf")
    for each in (page, other):
        card(each, "leaf").wait_for()
        until(each, "document.getElementById('memory-summary').textContent.includes('8 samples')")
    other.reload()
    card(other, "leaf").wait_for()
    page.get_by_label("Name of class leaf").fill("tree")
    page.keyboard.press("Enter")
    card(other, "tree").wait_for()
    service.empty()
    card(page, "cup").wait_for(state="detached")


def test_a_lost_connection_is_reported_and_restored(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]]
) -> None:
    page = open_page(ignore="net::ERR_")
    service.stop()
    page.get_by_role("alert").filter(has_text="does not answer").first.wait_for()
    assert page.locator("#connection").inner_text() == "Not connected"
    card(page, "Class 1").locator("input[type=file]").set_input_files(pictures["cup"][0])
    card(page, "Class 1").locator(".message[data-kind=bad]").wait_for()
    service.start()
    page.locator("#connection[data-state=awake]").wait_for()
    assert not page.locator("#offline").is_visible()
    until(
        page, "document.querySelector('.card .message').textContent === ''"
    )  # the message was about the lost connection
    teach(page, "cup", pictures["cup"])
