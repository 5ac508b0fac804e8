"""Tables and listings as Markdown."""

from __future__ import annotations

from pathlib import Path

from siesta.experiment.report import build_report, read_results, render_markdown, render_markdown_table
from siesta.experiment.report.document import Cell, ReportTable


def test_a_table() -> None:
    rows = [[Cell("siesta_aug", "paper"), Cell("1.5", "2.5", best=True)], [Cell("a|b"), Cell("-")]]
    assert render_markdown_table(ReportTable("Title", ["method", "alpha"], rows, "A note.")) == (
        "**Title**\n\n| method | alpha |\n| --- | ---: |\n"
        "| siesta\\_aug (paper) | **1.5** (2.5) |\n| a\\|b | - |\n\nA note."
    )
    assert render_markdown_table(ReportTable("T", ["m"], [], collapsible=True)).startswith(
        "<details><summary>T</summary>\n\n| m |"
    )


def test_markdown_has_all_tables_and_no_figures(out: Path) -> None:
    text = render_markdown(build_report(read_results([out])))
    assert text.startswith("# siesta: toy\n\n18 finished runs.")
    for words in (
        "## cub200, 224 px",
        "### What sleep adds",
        "do methods differ?",
        "Not finished",
        "siesta run toy.toml",
    ):
        assert words in text
    assert "<svg" not in text
    for block in text.split("\n\n"):
        if block.startswith("|"):
            widths = {line.replace("\\|", "").count("|") for line in block.splitlines()}
            assert len(widths) == 1
