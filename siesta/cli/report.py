"""Commands for researchers: report, archive."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from siesta.cli.output import console, errors
from siesta.errors import BadInput

__all__ = ["archive", "report"]

_Folders = Annotated[
    list[Path], typer.Argument(metavar="DIR...", help="--out folders of `siesta run`, or archives of them.")
]


def report(
    folders: _Folders,
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
    markdown: Annotated[Path | None, typer.Option(help="A file for the tables as Markdown.")] = None,
    figures: Annotated[Path | None, typer.Option(help="A folder for the figures as SVG and PDF.")] = None,
) -> None:
    """Write one page on finished runs: tables beside the paper's, figures, tests of significance.

    Example: siesta report runs/cub200 --out report.html --figures figures
    """
    library = _library()
    with errors.status("reading runs") as status:
        results = library.read_results(folders)
        for run in results.unfinished:
            errors.print(f"not finished: {run.path}")
        status.update("drawing figures")
        files = library.write_report(results, out, tables=markdown, figures=figures)
    for file in files:
        console.print(str(file))


def archive(
    folders: _Folders,
    out: Annotated[Path, typer.Option(help="Where to keep them, such as results/cub200.")],
) -> None:
    """Keep finished runs in a small form, for a repository; `siesta report` reads it as well.

    Example: siesta archive runs/cub200 --out results/cub200
    """
    for folder, size in _library().archive_runs(folders, out).items():
        console.print(f"{folder}  {size / 1000:,.0f} KB")


def _library() -> ModuleType:
    import importlib

    try:
        return importlib.import_module("siesta.experiment.report")
    except ModuleNotFoundError as error:
        raise BadInput(f"reports need {error.name}: pip install 'siesta-learn[report]'") from None
