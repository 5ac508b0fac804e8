"""The page of a card: self-contained, and everything on it is escaped."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from siesta.errors import SiestaError
from siesta.learner.card import Accuracy, ClassCard, LearnerCard, read_card
from siesta.learner.card_page import render_card, write_card
from tests.learner.test_card import taught

HOSTILE = '</script><script src="//evil">\u202e&'


class Elements(HTMLParser):
    """Collects the elements and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "path", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("path", "circle"):
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> LearnerCard:
    path = tmp_path_factory.mktemp("card") / "x.siesta"
    taught(path, 24)
    found = read_card(path)
    report = {"made": "2026-11-19T10:00:00+00:00", "updates": 40, "samples": 60, "held_out": 12, "used": False}
    damaged = {"made": None, "updates": "<b>", "accuracy_before": "<b>", "accuracy_after": 7}
    sleeps = ({**report, "accuracy_before": 0.5, "accuracy_after": 0.75}, damaged)
    first = ClassCard(HOSTILE, 1_234, 20, Accuracy(3, 4), found.classes[0].pictures)
    return replace(found, info=replace(found.info, sleeps=sleeps), classes=(first, *found.classes[1:]))


def test_it_needs_nothing_from_elsewhere_and_runs_nothing(card: LearnerCard) -> None:
    page = Elements(render_card(card))
    assert not page.open
    assert not {tag for tag, _ in page.elements} & {"script", "link", "iframe", "object", "form", "a"}
    for _, attributes in page.elements:
        assert not any(name.startswith("on") or name in ("href", "action") for name in attributes)
        assert (attributes.get("src") or "data:image/webp;base64,").startswith("data:image/webp;base64,")
    assert "url(" not in render_card(card) and "@import" not in render_card(card)
    assert "default-src 'none'" in dict(page.elements)["meta"].values() or "default-src 'none'" in render_card(card)


def test_it_shows_labels_accuracies_sleeps_and_memory(card: LearnerCard) -> None:
    page = Elements(render_card(card))
    low, high = (100 * bound for bound in Accuracy(3, 4).interval or ())
    for text in (HOSTILE, "1,234", "3 of 4", f"({low:.0f} to {high:.0f} %)", "75.0 %", "of 12", "kept, not used"):
        assert text in page.text
    assert "2026-11-19 10:00 UTC" in page.text and "efficientnet_lite0" in page.text
    circles = [attributes for tag, attributes in page.elements if tag == "circle"]
    assert len(circles) == 2, "a sleep whose report is damaged has no mark"
    assert float(str(circles[0]["cy"])) > float(str(circles[1]["cy"])), "better is higher"
    assert render_card(card) == render_card(card)


def test_confusions_of_many_classes_are_a_list(card: LearnerCard) -> None:
    many = tuple(replace(card.classes[1], label=f"class {number}") for number in range(30))
    confusion = 5 * np.eye(30, dtype=np.int64)
    assert "No held-out sample is confused" in render_card(replace(card, classes=many, confusion=confusion))
    confusion[3, 4:29] = 1
    confusion[2, 7] = 9
    page = render_card(replace(card, classes=many, confusion=confusion))
    assert "The 20 most frequent of 26 confusions" in page
    assert page.index('<tr><th scope="row" dir="auto">class 2</th><td dir="auto">class 7</td><td>9</td></tr>')


def test_it_says_what_makes_the_accuracy_doubtful(card: LearnerCard) -> None:
    assert "optimistic" not in render_card(card)
    assert "decided which weights" in render_card(replace(card, optimistic=True))
    assert "on the others alone" in render_card(replace(card, undecided=Accuracy(2, 3)))
    assert "cosine head" in render_card(replace(card, info=replace(card.info, head="cosine")))
    none = replace(card, confusion=np.zeros_like(card.confusion))
    assert "samples are held out from 20" in render_card(none) and "Confusion" not in render_card(none)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    taught(tmp_path / "x.siesta", 1)
    size = write_card(tmp_path / "x.siesta", tmp_path / "x.html")
    assert size == (tmp_path / "x.html").stat().st_size < 100_000
    with pytest.raises(SiestaError, match="does not exist"):
        write_card(tmp_path / "x.siesta", tmp_path / "nowhere" / "x.html")
