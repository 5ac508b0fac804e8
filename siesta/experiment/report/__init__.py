"""The report on finished runs: one page, Markdown tables, figures for a paper.

Example:
    results = read_results([Path("runs/cub200")])
    write_report(results, Path("report.html"), tables=Path("report.md"), figures=Path("figures"))
"""

from siesta.experiment.report.contents import make_report
from siesta.experiment.report.markdown import markdown, markdown_table
from siesta.experiment.report.page import page
from siesta.experiment.report.write import write_report
from siesta.experiment.results import Results, Run, archive_runs, read_results

__all__ = [
    "Results",
    "Run",
    "archive_runs",
    "make_report",
    "markdown",
    "markdown_table",
    "page",
    "read_results",
    "write_report",
]
