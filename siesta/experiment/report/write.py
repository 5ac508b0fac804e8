"""Reports written to files."""

from __future__ import annotations

from pathlib import Path

from siesta.errors import BadInput
from siesta.experiment.report.build import build_report
from siesta.experiment.report.html_page import render_html
from siesta.experiment.report.markdown import render_markdown
from siesta.experiment.report.render import render_file
from siesta.experiment.results import Results

__all__ = ["write_report"]


def write_report(
    results: Results, html: Path | None = None, *, tables: Path | None = None, figures: Path | None = None
) -> list[Path]:
    """Write a report in the requested formats; return the files written.

    Args:
        results: From `read_results`.
        html: File for the page.
        tables: File for the tables as Markdown.
        figures: Folder for every panel of every figure, as SVG and PDF.

    Raises:
        BadInput: A file cannot be written, or would overwrite a run or another file of the report.
    """
    _check_targets(results, [file for file in (html, tables) if file is not None])
    report = build_report(results)
    contents: dict[Path, bytes] = {}
    if html is not None:
        contents[html] = render_html(report).encode("utf-8")
    if tables is not None:
        contents[tables] = render_markdown(report).encode("utf-8")
    if figures is not None:
        for panel in (panel for figure in report.figures() for panel in figure.panels):
            for file_format in ("svg", "pdf"):
                contents[figures / f"{panel.name}.{file_format}"] = render_file(panel, file_format)
    for file, content in contents.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        except OSError as error:
            raise BadInput(f"{file} cannot be written ({error.strerror}): choose another place") from error
    return list(contents)


def _check_targets(results: Results, files: list[Path]) -> None:
    """Refuse to write one file over another, or into a run."""
    targets = [file.resolve() for file in files]
    if len(set(targets)) < len(targets):
        raise BadInput(f"the page and the tables cannot both be {files[0]}: choose another place for one")
    runs = [path.resolve() for path in results.paths()]
    for file, target in zip(files, targets, strict=True):
        if any(run in target.parents for run in runs):
            raise BadInput(f"{file} lies inside a run of the report: choose another place")
