"""The section "Ask" of the page: predictions as bars, the label `unknown`, corrections, and the live webcam."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import MakePictures
from tests.service.page_support import OpenPage, PageService, until


@pytest.fixture
def pictures(tmp_path: Path, make_pictures: MakePictures) -> dict[str, list[Path]]:
    folder = make_pictures(tmp_path / "pictures", ["cup", "leaf"], each=4)
    return {label: sorted((folder / label).iterdir()) for label in ("cup", "leaf")}


def unknown_prediction(score: float) -> dict[str, object]:
    """Return the response for a prediction below the threshold."""
    top = [{"label": "cup", "score": score}, {"label": "mug", "score": 1 - score}]
    answer = {"label": "unknown", "known": False, "score": score, "familiarity": score, "top": top}
    return {"predictions": [answer], "generation": 0}


def test_asking_before_teaching_shows_what_to_do(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]]
) -> None:
    page = open_page()
    page.locator("#ask-file").set_input_files(pictures["cup"][0])
    page.locator("#ask-message[data-kind=bad]").wait_for()
    assert not page.locator("#answer").is_visible()
    assert page.locator("#ask-message").inner_text() == "Teach it something first."
    page.get_by_role("button", name="Webcam", exact=True).click()
    assert page.locator("#ask-message").inner_text() == "Teach it something first."
    service.teach(pictures["cup"], "cup")
    until(page, "document.getElementById('ask-message').textContent === ''")  # the message does not apply any more


def test_a_prediction_has_bars_and_a_click_corrects_it(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]]
) -> None:
    service.teach(pictures["cup"][1:], "cup")
    service.teach(pictures["leaf"], "leaf")
    page = open_page()
    page.get_by_label("Say unknown").select_option("never")
    page.locator("#ask-file").set_input_files(pictures["cup"][0])
    page.locator("#answer").wait_for()
    assert page.locator("#verdict-label").inner_text() == "cup"
    assert page.locator("#bars li").count() == 2
    assert page.locator("#bars li.best .label").inner_text() == "cup"
    assert page.locator("#bars .score").first.inner_text().endswith("%")
    page.locator("#ask-file").set_input_files(pictures["leaf"][0])
    page.locator("#verdict-label", has_text="leaf").wait_for()
    likely = page.get_by_role("list", name="Most likely answers").locator(".label")
    assert likely.all_inner_texts() == ["leaf", "cup"]
    page.locator("#ask-file").set_input_files(pictures["cup"][0])
    page.locator("#verdict-label", has_text="cup").wait_for()

    page.get_by_role("button", name="It is leaf: teach it").click()
    page.locator("#correction-message[data-kind=good]").wait_for()
    assert "this is leaf" in page.locator("#correction-message").inner_text()
    page.get_by_label("Another name").fill("mug")
    page.get_by_role("button", name="Teach", exact=True).click()
    page.get_by_role("button", name="It is mug: teach it").wait_for()
    until(page, "document.querySelectorAll('#bars li').length === 3")  # predicted again
    counts = {known["label"]: known["stored"] for known in service.call("GET", "v1/classes")["classes"]}
    assert counts == {"cup": 3, "leaf": 5, "mug": 1}


def test_an_uncertain_prediction_is_unknown_and_shows_the_best_label(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]]
) -> None:
    for label in ("cup", "mug"):  # the same pictures, so neither is certain
        service.teach(pictures["cup"], label)
    page = open_page()
    page.locator("#ask-file").set_input_files(pictures["cup"][0])
    page.locator("#answer").wait_for()
    assert page.locator("#verdict-label").inner_text() == "unknown"
    assert "at best" in page.locator("#verdict-score").inner_text()
    response = unknown_prediction(0.5996)
    page.route("**/v1/predict*", lambda route: route.fulfill(json=response))
    page.locator("#ask-file").set_input_files(pictures["cup"][0])
    page.locator(
        "#verdict-score", has_text="familiarity 59 %; at best cup, 59 %"
    ).wait_for()  # rounded up, it would read 60 %, which is known
    page.unroute("**/v1/predict*")
    page.get_by_label("Say unknown").select_option("never")
    until(page, "document.getElementById('verdict-label').textContent !== 'unknown'")


def test_with_many_classes_the_likely_labels_are_offered(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]]
) -> None:
    service.teach(pictures["cup"][1:], "cup")
    for number in range(9):
        service.teach(pictures["leaf"][:1], f"leaf {number}")
    page = open_page()
    page.locator("#ask-file").set_input_files(pictures["cup"][0])
    page.locator("#answer").wait_for()
    offered = page.locator("#correction-choices button")
    assert offered.count() == 5
    assert offered.first.inner_text() == "cup"
    page.get_by_label("Find a class, or name a new one").fill("LEAF 7")
    assert page.locator("#classes > li:visible").count() == 1


def test_the_live_webcam_is_predicted_until_it_is_stopped(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]]
) -> None:
    service.teach(pictures["cup"], "cup")
    service.teach(pictures["leaf"], "leaf")
    page = open_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.extend([request.url] if "predict" in request.url else []))
    page.get_by_role("button", name="Webcam", exact=True).click()
    page.locator("#answer").wait_for()
    while len(requests) < 3:
        page.wait_for_timeout(50)
    assert page.get_by_role("list", name="Answers", exact=True).locator(".label").all_inner_texts() == ["cup", "leaf"]
    page.get_by_role("button", name="It is cup: teach it").click()
    page.locator("#correction-message[data-kind=good]").wait_for()
    page.get_by_role("button", name="Stop webcam").click()
    assert not page.locator("#ask-video").is_visible()
    page.wait_for_timeout(500)
    before = len(requests)
    page.wait_for_timeout(1000)
    assert len(requests) <= before + 1  # a frame that was taken before the stop may be predicted after it
    assert page.locator("#ask-empty").is_visible()


def test_a_camera_that_is_refused_is_explained(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]]
) -> None:
    service.teach(pictures["cup"], "cup")
    page = open_page()
    page.evaluate(
        "() => { navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('', 'NotAllowedError')); }"
    )
    page.get_by_role("button", name="Webcam", exact=True).click()
    page.locator("#ask-message[data-kind=bad]").wait_for()
    assert "allow it" in page.locator("#ask-message").inner_text()
    assert page.get_by_role("button", name="Webcam", exact=True).get_attribute("aria-pressed") == "false"


def test_an_error_rate_can_be_asked_for_only_where_it_can_be_promised(
    open_page: OpenPage, service: PageService
) -> None:
    page = open_page()
    info = service.call("GET", "v1/info")
    for least, possible in ((None, False), (0.096, True), (0.2, False)):
        info["held_out"].update(samples=30, accuracy=1.0, least_error_rate=least)
        page.route("**/v1/info", lambda route: route.fulfill(json=info))
        page.reload()
        option = "document.querySelector('#threshold [value^=error_rate]')"
        refused = str(not possible).lower()
        until(page, f"{option}.disabled === {refused} && Boolean({option}.title) === {refused}")


def test_none_of_these_rejects_the_labels_that_are_shown_and_undo_takes_it_back(
    open_page: OpenPage, service: PageService, pictures: dict[str, list[Path]]
) -> None:
    service.teach(pictures["cup"][1:], "cup")
    service.teach(pictures["leaf"], "leaf")
    page = open_page()
    page.locator("#ask-file").set_input_files(pictures["cup"][0])
    page.locator("#verdict-label", has_text="cup").wait_for()
    page.get_by_role("button", name="None of these").click()
    page.locator("#verdict-label", has_text="unknown").wait_for()
    page.locator("#correction-message[data-kind=good]").wait_for()
    rejections = {known["label"]: len(known["rejections"]) for known in service.call("GET", "v1/classes")["classes"]}
    assert rejections["cup"] == 1
    page.get_by_role("button", name="Undo").click()
    page.locator("#verdict-label", has_text="cup").wait_for()
    assert not page.get_by_role("button", name="Undo").is_visible()
    assert all(known["rejections"] == [] for known in service.call("GET", "v1/classes")["classes"])
