"""The page is valid, self-contained and escapes its texts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from siesta.experiment.report import Results, build_report, read_results, render_html
from siesta.experiment.report.document import Cell, CodeListing, ReportDocument, ReportSection, ReportTable
from tests.experiment.written_runs import write_run

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
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """One order with everything that a page shows: sleeps, seeds, an offline learner and an unfinished run."""
    folder = tmp_path_factory.mktemp("page") / "toy"
    write_run(folder)
    write_run(folder, seed=1)
    write_run(folder, "offline")
    write_run(folder, "ncm", done=False)
    return read_results([folder])


@pytest.fixture(scope="module")
def text(results: Results) -> str:
    return render_html(build_report(results))


def test_the_page_has_no_scripts_or_external_resources(text: str) -> None:
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


def test_the_page_supports_dark_mode_and_small_screens(text: str) -> None:
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    used, defined = set(re.findall(r"var\((--\w+)\)", text)), set(re.findall(r"(--\w+):", text))
    assert used <= defined


def test_the_same_results_give_the_same_page(results: Results, text: str) -> None:
    assert render_html(build_report(results)) == text


def test_names_are_escaped() -> None:
    evil = "<script>alert(1)</script>"
    table = ReportTable(evil, [evil], [[Cell(evil, evil, best=True)]], evil)
    folded = ReportTable(evil, [evil], [[Cell(evil)]], collapsible=True)
    report = ReportDocument(evil, evil, [ReportSection(evil, 2, [evil, table, folded, CodeListing(evil, [evil])])])
    assert "<script" not in render_html(report)
