"""A report finds its figures in order, wherever they are."""

from __future__ import annotations

from siesta.experiment.report.document import ReportDocument, ReportFigure, ReportSection, ReportTable


def test_figures_come_in_the_order_of_their_sections() -> None:
    first, second, third = (ReportFigure(title, "", [], []) for title in "abc")
    table = ReportTable("t", ["x"], [])
    sections = [ReportSection("one", 2, [first, "text", second]), ReportSection("two", 3, [table, third])]
    assert [figure.title for figure in ReportDocument("r", "lead", sections).figures()] == ["a", "b", "c"]
    assert list(ReportDocument("r", "lead", []).figures()) == []
