"""Sleeping on the page: progress as it goes, what it brought, going back; the same in every tab."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import MakePictures
from tests.service.page_support import OpenPage, Service, until


@pytest.fixture
def taught(service: Service, tmp_path: Path, make_pictures: MakePictures) -> Service:
    """Two classes, each with some held out."""
    folder = make_pictures(tmp_path / "pictures", ["cup", "leaf"], each=24)
    for label in ("cup", "leaf"):
        service.teach(sorted((folder / label).iterdir()), label)
    return service


def test_there_is_nothing_to_rehearse_in_an_empty_learner(
    open_page: OpenPage, service: Service, tmp_path: Path, make_pictures: MakePictures
) -> None:
    pictures = sorted((make_pictures(tmp_path / "pictures", ["cup", "leaf"], each=1) / "cup").iterdir())
    page = open_page()
    assert "teach me something first" in page.locator("#sleep-words").inner_text()
    page.get_by_role("button", name="Sleep", exact=True).click()
    page.locator("#sleep-say[data-kind=bad]").wait_for()
    assert page.get_by_role("button", name="Sleep", exact=True).is_visible()
    service.teach(pictures, "cup")
    until(page, "document.getElementById('sleep-say').textContent === ''")  # said of what works now
    page.locator("#teach-sum", has_text="1 class, 1 picture").wait_for()
    assert page.locator("#memory-words").inner_text().startswith("1 sample of")


def test_a_sleep_is_followed_in_two_tabs_and_judged_and_gone_back_from(open_page: OpenPage, taught: Service) -> None:
    page, other = open_page(), open_page(color_scheme="dark")
    page.get_by_label("Sleep for").fill("5")  # long enough for a slow machine: it is woken below
    assert page.locator("#budget-value").inner_text() == "5 min"
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
        assert "→" in each.locator("#morning .rise").inner_text()
        assert "pictures it never rehearses" in each.locator("#morning").inner_text()
        assert each.locator("#accuracy-plot .point").count() >= 2
        each.locator("#connection[data-state=awake]").wait_for()
    assert taught.call("GET", "v1/info")["sleeps"][-1]["policy"] == "uniform"

    page.get_by_text("Earlier nights").click()
    page.get_by_role("button", name="Answer as before any sleep").click()
    page.locator("#generations-say[data-kind=good]").wait_for()
    assert taught.call("GET", "v1/info")["generation"] == 0
    other.get_by_text("Earlier nights").click()
    other.locator("#generations li.used", has_text="Before any sleep").wait_for()


def test_a_sleep_begun_elsewhere_shows_by_itself_and_can_be_ended_here(open_page: OpenPage, taught: Service) -> None:
    page = open_page()
    taught.call("POST", "v1/sleep", {"seconds": 300})
    page.locator("#sleep-wake:enabled").click()
    page.locator("#connection[data-state=awake]").wait_for()
    page.locator("#morning", has_text="woken early").wait_for()
    assert page.get_by_role("button", name="Sleep", exact=True).is_visible()


def test_falling_asleep_again_says_so_and_the_focus_finds_the_next_button(open_page: OpenPage, taught: Service) -> None:
    page = open_page()
    words = "document.getElementById('sleep-words').textContent"
    watch = f"if (window.heard.at(-1) !== {words}) window.heard.push({words})"
    page.evaluate(f"() => {{ window.heard = []; setInterval(() => {{ {watch}; }}, 10); }}")
    for _ in range(2):  # the second finds the progress of the first
        page.get_by_role("button", name="Sleep", exact=True).focus()
        page.evaluate("() => { window.heard.length = 0; }")
        page.keyboard.press("Enter")
        until(page, "document.activeElement.id === 'sleep-wake'")
        until(page, "window.heard.at(-1)?.startsWith('Dreaming')")
        heard = page.evaluate("window.heard")
        assert heard[-2:] == ["Falling asleep…", "Dreaming of what it was taught"]
        assert not any(each.startswith("Awake") for each in heard[1:])
        page.keyboard.press("Enter")
        page.locator("#connection[data-state=awake]").wait_for()
        until(page, "document.activeElement.id === 'sleep-go'")


def test_what_is_refused_while_it_sleeps_is_said_on_the_card(open_page: OpenPage, taught: Service) -> None:
    page = open_page()
    taught.call("POST", "v1/sleep", {"seconds": 300})
    page.locator("#connection[data-state=asleep]").wait_for()
    page.get_by_label("Name of class cup").fill("mug")
    page.keyboard.press("Enter")
    page.locator("#classes .say[data-kind=bad]").wait_for()
    assert page.locator("#classes .say[data-kind=bad]").inner_text() == "It sleeps: wake it up first, or wait."
    assert page.get_by_label("Name of class cup").input_value() == "cup"


def test_drift_and_a_sleep_that_did_worse_are_said(open_page: OpenPage, taught: Service) -> None:
    page = open_page()
    told = taught.call("GET", "v1/info")
    told["codec"].update(drifted=True, relative_error=0.1, error_lately=0.2)
    night = {"made": "2026-01-01T06:01:00+00:00", "policy": "uniform", "updates": 64, "seconds": 9.0, "samples": 40}
    scores = {"loss_before": 0.5, "loss_after": 0.4, "held_out": 10, "accuracy_before": 0.9, "accuracy_after": 0.6}
    told["sleeps"] = [{"generation": 1, "interrupted": False, "used": False, **night, **scores}]
    page.route("**/v1/info", lambda route: route.fulfill(json=told))
    page.reload()
    page.locator("#drift", has_text="20 % instead of 10 %").wait_for()
    morning = page.locator("#morning").inner_text()
    assert "30 points" in morning
    assert "kept but not used" in morning
    told["sleeps"][0].update(held_out=0, accuracy_before=None, accuracy_after=None)
    page.reload()  # classes have 20 by now: what is said is how it was then
    page.locator("#morning", has_text="None had that many when it slept.").wait_for()
