"""The report on finished runs: an HTML page, Markdown tables, and figures for a paper.

Example:
    results = read_results([Path("runs/cub200")])
    write_report(results, Path("report.html"), tables=Path("report.md"), figures=Path("figures"))
"""

from siesta.experiment.report.build import build_report
from siesta.experiment.report.html_page import render_html
from siesta.experiment.report.markdown import render_markdown, render_markdown_table
from siesta.experiment.report.write import write_report
from siesta.experiment.results import FinishedRun, Results, archive_runs, read_results

__all__ = [
    "FinishedRun",
    "Results",
    "archive_runs",
    "build_report",
    "read_results",
    "render_html",
    "render_markdown",
    "render_markdown_table",
    "write_report",
]
