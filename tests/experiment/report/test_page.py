from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from siesta.experiment.report import make_report, page, read_results
from siesta.experiment.report.document import Cell, Listing, Report, Section, Table

VOID = {"meta", "path", "use", "rect", "br"}


class Checker(HTMLParser):
    """Tags close in order, ids are unique, nothing points outside."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            assert not name.startswith("on"), "no script"
            if name == "id":
                self.ids.append(str(value))
            if name in ("href", "src", "xlink:href", "data", "srcset", "action"):
                self.targets.append(str(value))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def text(out: Path) -> str:
    return page(make_report(read_results([out])))


def test_the_page_stands_alone(text: str) -> None:
    assert "http:" not in text
    assert "https:" not in text
    assert "@import" not in text
    assert re.findall(r"url\((?!#)", text) == []
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert len(checker.ids) == len(set(checker.ids))
    assert all(target.startswith("#") and target[1:] in checker.ids for target in checker.targets)
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= set(checker.ids)
    assert not checker.tags & {"script", "link", "img", "iframe", "object", "embed"}
    assert {"svg", "table", "details"} <= checker.tags


def test_it_is_for_light_and_dark_and_for_small_screens(text: str) -> None:
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    used, defined = set(re.findall(r"var\((--\w+)\)", text)), set(re.findall(r"(--\w+):", text))
    assert used <= defined


def test_the_same_results_give_the_same_page(out: Path, text: str) -> None:
    assert page(make_report(read_results([out]))) == text


def test_names_are_text_not_markup() -> None:
    evil = "<script>alert(1)</script>"
    table = Table(evil, [evil], [[Cell(evil, evil, best=True)]], evil)
    folded = Table(evil, [evil], [[Cell(evil)]], fold=True)
    report = Report(evil, evil, [Section(evil, 2, [evil, table, folded, Listing(evil, [evil])])])
    assert "<script" not in page(report)
