"""The section "Sleep" of the page: progress, result and earlier generations, the same in every tab."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import MakePictures
from tests.service.page_support import OpenPage, PageService, until

RECORD_TEXTS = """
() => {
  const element = document.getElementById("sleep-state-text");
  window.texts = [];
  const record = () => { if (window.texts.at(-1) !== element.textContent) window.texts.push(element.textContent); };
  new MutationObserver(record).observe(element, { childList: true });
}
"""


@pytest.fixture
def taught(service: PageService, tmp_path: Path, make_pictures: MakePictures) -> PageService:
    """The service with two classes, each with held-out samples."""
    folder = make_pictures(tmp_path / "pictures", ["cup", "leaf"], each=24)
    for label in ("cup", "leaf"):
        service.teach(sorted((folder / label).iterdir()), label)
    return service


def test_an_empty_learner_has_nothing_to_rehearse(
    open_page: OpenPage, service: PageService, tmp_path: Path, make_pictures: MakePictures
) -> None:
    pictures = sorted((make_pictures(tmp_path / "pictures", ["cup", "leaf"], each=1) / "cup").iterdir())
    page = open_page()
    assert "teach me something first" in page.locator("#sleep-state-text").inner_text()
    page.get_by_role("button", name="Sleep", exact=True).click()
    page.locator("#sleep-message[data-kind=bad]").wait_for()
    assert page.get_by_role("button", name="Sleep", exact=True).is_visible()
    service.teach(pictures, "cup")
    until(page, "document.getElementById('sleep-message').textContent === ''")  # the message does not apply any more
    page.locator("#class-count", has_text="1 class, 1 picture").wait_for()
    assert page.locator("#memory-summary").inner_text().startswith("1 sample of")


def test_two_tabs_follow_a_sleep_show_its_accuracy_and_activate_earlier_weights(
    open_page: OpenPage, taught: PageService
) -> None:
    page, other = open_page(), open_page(color_scheme="dark")
    assert page.locator("#budget-value").inner_text() == "until done"
    assert page.locator("#sleep-need").inner_text().startswith("Sleep is due: 2 new classes and 48 new samples")
    page.locator("#budget").fill("6")  # long enough for a slow machine; it is ended below
    assert page.locator("#budget-value").inner_text() == "for 5 min"
    page.get_by_label("Rehearse").select_option("uniform")
    page.get_by_role("button", name="Sleep", exact=True).click()
    for each in (page, other):
        each.locator("#connection[data-state=asleep]").wait_for()
        each.locator("#loss-plot polyline").wait_for()
        until(each, "document.getElementById('moon').getAttribute('aria-valuenow') > 0")
        assert float(each.locator("#sleep-loss").inner_text()) >= 0
        assert "min" in each.locator("#sleep-left").inner_text()
    page.get_by_role("button", name="Wake up").click()
    for each in (page, other):
        each.get_by_role("heading", name="Last sleep").wait_for()
        assert "→" in each.locator("#last-sleep .rise").inner_text()
        assert "pictures it never rehearses" in each.locator("#last-sleep").inner_text()
        assert each.locator("#accuracy-plot .point").count() >= 2
        each.locator("#connection[data-state=awake]").wait_for()
    assert taught.call("GET", "v1/info")["sleeps"][-1]["policy"] == "uniform"

    page.get_by_text("Earlier sleeps").click()
    page.get_by_role("button", name="Answer as before any sleep").click()
    page.locator("#generations-message[data-kind=good]").wait_for()
    assert taught.call("GET", "v1/info")["generation"] == 0
    other.get_by_text("Earlier sleeps").click()
    other.locator("#generations li.used", has_text="Before any sleep").wait_for()


def test_a_sleep_lasts_until_it_is_done_unless_told_otherwise(open_page: OpenPage, taught: PageService) -> None:
    page = open_page()
    page.get_by_role("button", name="Sleep", exact=True).click()
    page.locator("#sleep-left", has_text="≤").wait_for()
    page.locator("#last-sleep", has_text="too few pictures are held out to end it by them").wait_for()
    report = taught.call("GET", "v1/info")["sleeps"][-1]
    assert (report["ended"], report["interrupted"]) == ("passes", False)
    assert page.locator("#sleep-need").inner_text().startswith("Sleep is not due: 0 new classes")


def test_a_sleep_started_elsewhere_is_shown_and_can_be_ended(open_page: OpenPage, taught: PageService) -> None:
    page = open_page()
    taught.call("POST", "v1/sleep", {"seconds": 300})
    page.locator("#sleep-wake:enabled").click()
    page.locator("#connection[data-state=awake]").wait_for()
    page.locator("#last-sleep", has_text="woken early").wait_for()
    assert page.get_by_role("button", name="Sleep", exact=True).is_visible()


def test_a_second_sleep_starts_anew_and_the_focus_moves_to_the_next_button(
    open_page: OpenPage, taught: PageService
) -> None:
    page = open_page()
    page.locator("#budget").fill("6")  # long enough for a slow machine; each sleep is ended below
    page.evaluate(RECORD_TEXTS)
    for _ in range(2):  # the second must not show the progress of the first
        page.get_by_role("button", name="Sleep", exact=True).focus()
        page.evaluate("() => { window.texts.length = 0; }")
        page.keyboard.press("Enter")
        until(page, "document.activeElement.id === 'sleep-wake'")
        until(page, "window.texts.at(-1)?.startsWith('Rehearsing')")
        texts = page.evaluate("window.texts")
        assert texts[-2:] == ["Falling asleep…", "Rehearsing what it was taught"]
        assert not any(each.startswith("Awake") for each in texts[1:])
        page.keyboard.press("Enter")
        page.locator("#connection[data-state=awake]").wait_for()
        until(page, "document.activeElement.id === 'sleep-go'")


def test_a_change_that_is_refused_during_a_sleep_is_reported_on_the_card(
    open_page: OpenPage, taught: PageService
) -> None:
    page = open_page()
    taught.call("POST", "v1/sleep", {"seconds": 300})
    page.locator("#connection[data-state=asleep]").wait_for()
    page.get_by_label("Name of class cup").fill("mug")
    page.keyboard.press("Enter")
    page.locator("#classes .message[data-kind=bad]").wait_for()
    assert page.locator("#classes .message[data-kind=bad]").inner_text() == "It sleeps: wake it up first, or wait."
    assert page.get_by_label("Name of class cup").input_value() == "cup"


def test_drift_and_a_sleep_that_made_the_accuracy_worse_are_reported(open_page: OpenPage, taught: PageService) -> None:
    page = open_page()
    info = taught.call("GET", "v1/info")
    info["codec"].update(drifted=True, relative_error=0.1, error_lately=0.2)
    report = {"made": "2026-01-01T06:01:00+00:00", "policy": "uniform", "updates": 64, "seconds": 9.0, "samples": 40}
    scores = {"loss_before": 0.5, "loss_after": 0.4, "held_out": 10, "accuracy_before": 0.9, "accuracy_after": 0.6}
    shown = {"interval_after": [0.26, 0.88], "optimistic": True}
    info["sleeps"] = [{"generation": 1, "interrupted": False, "used": False, **report, **scores, **shown}]
    page.route("**/v1/info", lambda route: route.fulfill(json=info))
    page.reload()
    page.locator("#drift", has_text="20 % instead of 10 %").wait_for()
    text = page.locator("#last-sleep").inner_text()
    assert "30 points" in text
    assert "10 pictures it never rehearses, so between 26 % and 88 % with 95 % confidence; optimistic, because" in text
    assert "kept but not used" in text
    info["sleeps"][0].update(held_out=0, accuracy_before=None, accuracy_after=None)
    page.reload()  # classes have 20 pictures by now, but had fewer at that time
    page.locator("#last-sleep", has_text="No class had that many at that time.").wait_for()
