from __future__ import annotations

from pathlib import Path

from siesta.experiment.report import make_report, markdown, markdown_table, read_results
from siesta.experiment.report.document import Cell, Table


def test_a_table() -> None:
    rows = [[Cell("siesta_aug", "paper"), Cell("1.5", "2.5", best=True)], [Cell("a|b"), Cell("-")]]
    assert markdown_table(Table("Title", ["method", "alpha"], rows, "A note.")) == (
        "**Title**\n\n| method | alpha |\n| --- | ---: |\n"
        "| siesta\\_aug (paper) | **1.5** (2.5) |\n| a\\|b | - |\n\nA note."
    )
    assert markdown_table(Table("T", ["m"], [], fold=True)).startswith("<details><summary>T</summary>\n\n| m |")


def test_all_tables_are_there_and_no_drawing(out: Path) -> None:
    text = markdown(make_report(read_results([out])))
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
