"""Reports on disk."""

from __future__ import annotations

from pathlib import Path

from siesta.errors import BadInput
from siesta.experiment.report.contents import make_report
from siesta.experiment.report.look import standalone
from siesta.experiment.report.markdown import markdown
from siesta.experiment.report.page import page
from siesta.experiment.results import Results

__all__ = ["write_report"]


def write_report(
    results: Results, html: Path | None = None, *, tables: Path | None = None, figures: Path | None = None
) -> list[Path]:
    """Writes what is asked for; returns the files.

    Args:
        results: From `read_results`.
        html: The page.
        tables: The tables as Markdown.
        figures: A folder for every panel of every figure, as SVG and PDF.
    """
    _check_places(results, [file for file in (html, tables) if file is not None])
    report = make_report(results)
    contents: dict[Path, bytes] = {}
    if html is not None:
        contents[html] = page(report).encode("utf-8")
    if tables is not None:
        contents[tables] = markdown(report).encode("utf-8")
    if figures is not None:
        for panel in (panel for figure in report.figures() for panel in figure.panels):
            for kind in ("svg", "pdf"):
                contents[figures / f"{panel.name}.{kind}"] = standalone(panel, kind)
    for file, content in contents.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        except OSError as error:
            raise BadInput(f"{file} cannot be written ({error.strerror}): name another place") from error
    return list(contents)


def _check_places(results: Results, files: list[Path]) -> None:
    """Refuses to write one file over another, or over what the report is made of."""
    places = [file.resolve() for file in files]
    if len(set(places)) < len(places):
        raise BadInput(f"the page and the tables cannot both be {files[0]}: name another place for one")
    runs = [path.resolve() for path in results.paths()]
    for file, place in zip(files, places, strict=True):
        if any(run in place.parents for run in runs):
            raise BadInput(f"{file} lies inside a run that is reported on: name another place")
