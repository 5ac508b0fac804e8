"""The sections and tables of a report."""

from __future__ import annotations

from pathlib import Path

from siesta.experiment.report import build_report, read_results
from siesta.experiment.report.document import CodeListing, ReportDocument, ReportTable
from tests.experiment.written_runs import write_run


def titles(report: ReportDocument) -> list[str]:
    return [section.title for section in report.sections]


def runs_of(report: ReportDocument) -> list[ReportTable | CodeListing]:
    return [part for part in report.sections[-1].blocks if isinstance(part, ReportTable | CodeListing)]


def test_the_sections_of_a_report(out: Path) -> None:
    report = build_report(read_results([out]))
    assert titles(report) == [
        "cub200, 224 px",
        "Learning curves",
        "What sleep adds",
        "Accuracy against cost",
        "Old and new classes",
        "Where time, FLOPs and bytes go",
        "Do they differ?",
        "Runs",
    ]
    assert len(list(report.figures())) == 2 + 2 + 2 + 1
    names = [panel.name for figure in report.figures() for panel in figure.panels]
    assert len(names) == len(set(names))
    assert "1 not finished" in report.lead


def test_the_report_lists_commands_and_provenance(out: Path) -> None:
    unfinished, commands, provenance = runs_of(build_report(read_results([out])))
    assert isinstance(unfinished, ReportTable)
    assert [cell.text for cell in unfinished.rows[0]][:3] == ["toy/ncm-class_incremental-0", "2", "6"]
    assert isinstance(commands, CodeListing)
    assert "siesta run toy.toml --methods siesta --orders iid --seeds 1" in commands.lines
    assert isinstance(provenance, ReportTable)
    row = next(row for row in provenance.rows if row[0].text == "toy/siesta-iid-1")
    assert [cell.text for cell in row[1:]] == [
        "3",
        "id-siesta-iid-1",
        "0123456789ab",
        "2026-01-02 03:04",
        "2 cores x86_64, Linux, torch 2.6.0",
    ]


def test_the_command_of_old_rows_is_derived_from_other_fields(tmp_path: Path) -> None:
    write_run(tmp_path / "toy", command=None)
    commands = runs_of(build_report(read_results([tmp_path])))[0]
    assert isinstance(commands, CodeListing)
    assert commands.lines == ["siesta run toy.toml --methods siesta --orders class_incremental --seeds 0"]


def test_a_report_on_unfinished_runs_only(tmp_path: Path) -> None:
    write_run(tmp_path / "toy", done=False)
    (tmp_path / "toy" / "runs" / "siesta-iid-0").mkdir()
    (tmp_path / "toy" / "runs" / "siesta-iid-0" / "identity").write_text("x")
    report = build_report(read_results([tmp_path]))
    assert titles(report) == ["Runs"]
    assert report.title == "siesta: toy"
    (table,) = runs_of(report)
    assert isinstance(table, ReportTable)
    assert [row[1].text for row in table.rows] == ["3", "0"]


def test_a_report_on_a_single_run(tmp_path: Path) -> None:
    write_run(tmp_path / "toy", "ncm", steps=1)
    assert titles(build_report(read_results([tmp_path])))[1:] == [
        "Learning curves",
        "Accuracy against cost",
        "Where time, FLOPs and bytes go",
        "Runs",
    ]
