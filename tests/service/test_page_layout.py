"""Layout of the page across its modules: small screens, keyboard, contrast, themes and motion."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import MakePictures
from tests.service.page_support import OpenPage, PageService, card, until

if TYPE_CHECKING:
    from playwright.sync_api import Page


LOW_CONTRAST = """
() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => {
    const [r, g, b] = rgba(colour).map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      if (at.matches(".sleep-panel")) return getComputedStyle(at).getPropertyValue("--sleep-top"); // its lightest part
      const colour = getComputedStyle(at).backgroundColor;
      if (rgba(colour)[3] > 250) return colour;
    }
    return "white";
  };
  const low = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!(own || element.matches("input")) || !element.checkVisibility() || element.disabled) continue;
    if (element.closest("svg, .visually-hidden, option, .skip")) continue;
    const style = getComputedStyle(element), a = light(style.color), b = light(ground(element));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = parseFloat(style.fontSize) >= 24;
    if (contrast < (large ? 3 : 4.5)) low.push(`${element.textContent.trim()}: ${contrast.toFixed(2)}`);
  }
  return low;
}
"""


@pytest.fixture
def pictures(tmp_path: Path, make_pictures: MakePictures) -> dict[str, list[Path]]:
    folder = make_pictures(tmp_path / "pictures", ["cup", "leaf"], each=4)
    return {label: sorted((folder / label).iterdir()) for label in ("cup", "leaf")}


def ask(page: Page, picture: Path) -> None:
    page.locator("#ask-file").set_input_files(picture)
    page.locator("#answer").wait_for()


def test_a_small_screen_shows_everything_without_scrolling_sideways(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]]
) -> None:
    service.teach(pictures["cup"], "a cup with a very long name that no small screen has any room for")
    service.teach(pictures["leaf"], "leaf")
    page = open_page(width=380, height=760, has_touch=True)
    card(page, "leaf").wait_for()
    page.locator(".tabs a[href='#teach'][aria-current]").wait_for()
    assert page.locator(".tabs a[aria-current]").count() == 1
    ask(page, pictures["cup"][0])
    assert page.evaluate("document.documentElement.scrollWidth") == 380
    for section in ("Ask", "Sleep", "Memory", "Teach"):
        page.get_by_role("navigation").get_by_role("link", name=section).tap()
        page.locator(f".tabs a[href='#{section.lower()}'][aria-current]").wait_for()
        assert page.get_by_role("heading", name=section, exact=True).is_visible()
    small = "[...document.querySelectorAll('button, select, .tabs a')].filter((each) => each.checkVisibility())"
    assert page.evaluate(f"{small}.every((each) => each.getBoundingClientRect().height >= 40)")


def test_a_small_screen_shows_some_of_many_classes_and_all_on_request(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]]
) -> None:
    for number in range(14):
        service.teach(pictures["cup"][:1], f"cup {number}")
    page = open_page(width=380, height=760)
    shown = page.locator("#classes > li:visible")
    page.get_by_role("button", name="Show all 14").wait_for()
    assert shown.count() == 12
    page.get_by_label("Find a class, or name a new one").fill("cup 13")
    assert shown.count() == 1
    page.keyboard.press("Enter")
    assert shown.count() == 13  # with the one that was searched for
    page.get_by_role("button", name="Show all 14").click()
    assert shown.count() == 14
    page.get_by_role("button", name="Show fewer").click()
    page.set_viewport_size({"width": 1280, "height": 900})
    page.locator("#show-all").wait_for(state="hidden")
    assert shown.count() == 14  # on a large screen the list scrolls
    page.locator("#shares.more").wait_for()  # it fades out below until its end is visible
    page.locator("#shares li").last.scroll_into_view_if_needed()
    page.locator("#shares:not(.more)").wait_for()


def test_everything_can_be_done_by_keyboard(open_page: OpenPage, pictures: dict[str, list[Path]]) -> None:
    page = open_page()

    def reach(name: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            named = "(document.activeElement.ariaLabel || document.activeElement.labels?.[0]?.textContent"
            if page.evaluate(f"{named} || document.activeElement.textContent).trim()") == name:
                return
        pytest.fail(f"{name} cannot be reached by the Tab key")

    reach("Find a class, or name a new one")
    page.keyboard.type("cup")
    page.keyboard.press("Enter")
    with page.expect_file_chooser() as chooser:  # the focus is on the new card
        page.keyboard.press("Enter")
    chooser.value.set_files(pictures["cup"])
    card(page, "cup").locator(".message[data-kind=good]").wait_for()
    reach("Choose a picture")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    chooser.value.set_files(pictures["cup"][0])
    page.get_by_role("button", name="It is cup: teach it").wait_for()
    reach("It is cup: teach it")
    page.keyboard.press("Enter")
    page.locator("#correction-message[data-kind=good]").wait_for()
    reach("Sleep until done")
    page.keyboard.press("ArrowRight")
    assert page.locator("#budget-value").inner_text() == "for 10 s"
    page.keyboard.press("Home")
    reach("Sleep")
    page.reload()
    card(page, "cup").wait_for()
    reach("More for cup")
    page.keyboard.press("Enter")
    reach("Forget…")
    page.keyboard.press("Enter")
    reach("Forget")
    page.keyboard.press("Enter")
    card(page, "cup").wait_for(state="detached")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]], scheme: str
) -> None:
    service.teach(pictures["cup"], "cup")
    service.teach(pictures["leaf"], "leaf")
    page = open_page(color_scheme=scheme)
    ask(page, pictures["cup"][0])
    page.get_by_label("Find a class, or name a new one").fill("zzz")
    page.get_by_label("Find a class, or name a new one").fill("")
    page.get_by_role("button", name="Add", exact=True).click()  # an error message
    page.get_by_role("button", name="Webcam", exact=True).click()  # pressed, with the mouse over it
    page.get_by_label("More for cup").click()
    page.get_by_role("button", name="Stop webcam").hover()
    until(page, "!document.getAnimations().some((each) => each.transitionProperty?.endsWith('color'))")
    assert page.evaluate(LOW_CONTRAST) == []


def test_the_theme_is_chosen_and_remembered(open_page: OpenPage) -> None:
    page = open_page(color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Theme: auto").click()
    page.get_by_role("button", name="Theme: light").click()
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    assert page.evaluate(background) == dark
    page.get_by_role("button", name="Theme: dark").click()
    assert page.evaluate(background) == light


def test_reduced_motion_is_respected(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]]
) -> None:
    service.teach(pictures["cup"], "cup")
    page = open_page(reduced_motion="reduce")
    ask(page, pictures["cup"][0])
    assert page.evaluate("document.getAnimations().length") == 0
