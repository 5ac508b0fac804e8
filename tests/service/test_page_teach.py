"""The section "Teach" of the page: pictures from files, drops, the clipboard and the webcam; edits of classes."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import MakePictures
from tests.service.page_support import OpenPage, PageService, card, teach, until

if TYPE_CHECKING:
    from playwright.sync_api import Locator


DISPATCH_FILE = """
([selector, name, how, data]) => {
  const target = document.querySelector(selector), files = new DataTransfer();
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  files.items.add(new File([bytes], name, { type: "image/png" }));
  if (how === "paste") target.focus();
  const parts = { bubbles: true, cancelable: true };
  target.dispatchEvent(how === "paste"
    ? new ClipboardEvent("paste", { clipboardData: files, ...parts })
    : new DragEvent("drop", { dataTransfer: files, ...parts }));
}
"""


@pytest.fixture
def pictures(tmp_path: Path, make_pictures: MakePictures) -> dict[str, list[Path]]:
    folder = make_pictures(tmp_path / "pictures", ["cup", "leaf"], each=6)
    return {label: sorted((folder / label).iterdir()) for label in ("cup", "leaf")}


def stored(service: PageService) -> dict[str, int]:
    return {known["label"]: known["stored"] for known in service.call("GET", "v1/classes")["classes"]}


def expect_count(place: Locator, number: int) -> None:
    from playwright.sync_api import expect

    expect(place.locator(".count")).to_have_text(str(number))


def test_an_empty_page_shows_what_to_do(open_page: OpenPage) -> None:
    page = open_page()
    assert "Teach me two things" in page.locator("#teach-hint").inner_text()
    assert page.locator("#classes > li").count() == 2
    page.get_by_label("Find a class, or name a new one").fill("cup")
    page.keyboard.press("Enter")
    assert page.locator("#classes > li").count() == 2  # the first empty card has this name now
    card(page, "cup").wait_for()


def test_chosen_pictures_become_a_class_with_thumbnails(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]]
) -> None:
    page = open_page()
    teach(page, "cup", pictures["cup"])
    expect_count(card(page, "cup"), 6)
    shown = card(page, "cup").locator(".thumbs img")
    assert shown.count() == 6
    until(page, "[...document.querySelectorAll('.thumbs img')].every((image) => image.naturalWidth > 0)")
    assert stored(service) == {"cup": 6}
    assert "another" in page.locator("#teach-hint").inner_text()
    teach(page, "leaf", pictures["leaf"][:2])
    page.locator("#class-count", has_text="2 classes, 8 pictures").wait_for()
    assert page.locator("#teach-hint").inner_text() == ""


def test_unreadable_files_are_named_and_the_others_are_taught(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]], tmp_path: Path
) -> None:
    broken = [tmp_path / "broken <b>.png", tmp_path / "other (1).png"]
    for file in broken:
        file.write_bytes(b"not a picture")
    page = open_page()
    page.get_by_label("Find a class, or name a new one").fill("cup")
    page.keyboard.press("Enter")
    place = card(page, "cup")
    place.locator("input[type=file]").set_input_files([*pictures["cup"][:2], *broken, *pictures["cup"][2:]])
    message = place.locator(".message[data-kind=bad]")
    message.wait_for()
    assert "6 of 8 taught" in message.inner_text()
    why = "is not a readable image: send JPEG, PNG, WebP or GIF."
    assert message.locator("li").all_inner_texts() == [f"{file.name} {why}" for file in broken]
    assert message.get_attribute("role") == "alert"
    assert stored(service) == {"cup": 6}


@pytest.mark.parametrize("how", ["drop", "paste"])
def test_pictures_are_dropped_and_pasted_on_a_card(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]], how: str
) -> None:
    page = open_page()
    data = base64.b64encode(pictures["cup"][0].read_bytes()).decode()
    page.evaluate(DISPATCH_FILE, ["#classes > li .pick", "cup.png", how, data])
    card(page, "Class 1").locator(".message[data-kind=good]").wait_for()
    assert stored(service) == {"Class 1": 1}


def test_a_folder_that_is_dropped_becomes_a_class(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]]
) -> None:
    page = open_page()
    box = page.locator("#teach-title").bounding_box()
    assert box is not None
    devtools = page.context.new_cdp_session(page)
    folders = [str(pictures[label][0].parent) for label in ("cup", "leaf")]
    data = {"items": [], "files": folders, "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        devtools.send("Input.dispatchDragEvent", {"type": kind, "x": box["x"] + 5, "y": box["y"] + 5, "data": data})
    expect_count(card(page, "leaf"), 6)
    assert stored(service) == {"cup": 6, "leaf": 6}


def test_a_drop_beside_the_cards_is_explained(open_page: OpenPage, pictures: dict[str, list[Path]]) -> None:
    page = open_page()
    data = base64.b64encode(pictures["cup"][0].read_bytes()).decode()
    page.evaluate(DISPATCH_FILE, ["#teach-title", "cup.png", "drop", data])
    page.locator("#teach-message[data-kind=bad]").wait_for()
    assert "Drop pictures on the card" in page.locator("#teach-message").inner_text()


def test_a_class_is_renamed_and_a_taken_name_is_refused_beside_it(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]]
) -> None:
    service.teach(pictures["cup"], "cup")
    service.teach(pictures["leaf"], "leaf")
    page = open_page()
    page.get_by_label("Name of class cup").fill("leaf")
    page.keyboard.press("Enter")
    card(page, "cup").locator(".message[data-kind=bad]").wait_for()
    assert page.get_by_label("Name of class cup").input_value() == "cup"
    page.get_by_label("Name of class cup").fill("")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('.card .message').textContent === ''")  # the message was about another name
    page.get_by_label("Name of class cup").fill("<img src=x>")
    page.keyboard.press("Enter")
    card(page, "<img src=x>").wait_for()
    assert stored(service) == {"<img src=x>": 6, "leaf": 6}
    assert page.locator("#shares img, #correction-choices img").count() == 0
    assert "<img src=x>" in page.locator("#shares").inner_text()


def test_classes_are_merged_and_forgotten_after_a_confirmation(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]]
) -> None:
    for label in ("cup", "mug", "leaf"):
        service.teach(pictures["cup" if label != "leaf" else "leaf"][:3], label)
    page = open_page()
    page.get_by_label("More for mug").click()
    page.get_by_role("button", name="Merge into another…").click()
    page.get_by_label("Into").select_option(label="cup")
    page.get_by_role("button", name="Merge", exact=True).click()
    expect_count(card(page, "cup"), 6)
    assert stored(service) == {"cup": 6, "leaf": 3}

    page.get_by_label("More for leaf").click()
    page.get_by_role("button", name="Forget…").click()
    page.get_by_role("button", name="Keep as it is").click()
    assert stored(service) == {"cup": 6, "leaf": 3}
    page.get_by_label("More for leaf").click()
    page.get_by_role("button", name="Forget…").click()
    page.get_by_role("button", name="Forget", exact=True).click()
    card(page, "leaf").wait_for(state="detached")
    assert stored(service) == {"cup": 6}


@pytest.mark.parametrize("by", ["mouse", "key"])
def test_the_webcam_teaches_while_its_button_is_held(open_page: OpenPage, service: PageService, by: str) -> None:
    page = open_page()
    page.get_by_label("Webcam for Class 1").click()
    button = card(page, "Class 1").locator(".hold")
    until(page, "document.querySelector('.card-webcam video').videoWidth > 0")
    button.focus()
    if by == "mouse":
        button.hover()
    (page.mouse.down if by == "mouse" else lambda: page.keyboard.down(" "))()
    until(page, "document.querySelector('.hold').textContent.match(/: ([3-9]|\\d\\d)/)")
    (page.mouse.up if by == "mouse" else lambda: page.keyboard.up(" "))()
    assert button.inner_text() == "Hold to teach"
    card(page, "Class 1").locator(".message[data-kind=good]").wait_for()
    until(page, "Number(document.querySelector('.count').textContent) >= 3")
    count = "document.querySelector('.count').textContent"
    message = "document.querySelector('.card .message').textContent"
    until(page, f"{message} === `${{{count}}} pictures taught.`")  # counts all requests of this hold
    page.get_by_label("Webcam for Class 1").click()
    assert stored(service)["Class 1"] >= 3
    assert button.text_content() == "Hold to teach"  # also after the last frame was sent
    assert not card(page, "Class 1").locator("video").is_visible()
