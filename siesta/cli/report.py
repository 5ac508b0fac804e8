"""The commands `siesta report` and `siesta archive`."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from siesta.cli.output import console, err_console
from siesta.errors import BadInput

__all__ = ["archive", "report"]

_Folders = Annotated[
    list[Path], typer.Argument(metavar="DIR...", help="--out folders of `siesta run`, or archives of them.")
]


def report(
    folders: _Folders,
    out: Annotated[Path, typer.Option(help="File for the HTML page.")] = Path("report.html"),
    markdown: Annotated[Path | None, typer.Option(help="File for the tables as Markdown.")] = None,
    figures: Annotated[Path | None, typer.Option(help="Folder for the figures as SVG and PDF.")] = None,
) -> None:
    """Write a report on finished runs: tables beside the paper's, figures, significance tests.

    Example: siesta report runs/cub200 --out report.html --figures figures
    """
    library = _import_report()
    with err_console.status("reading runs") as status:
        results = library.read_results(folders)
        for run in results.unfinished:
            err_console.print(f"not finished: {run.path}")
        status.update("drawing figures")
        files = library.write_report(results, out, tables=markdown, figures=figures)
    for file in files:
        console.print(str(file))


def archive(
    folders: _Folders,
    out: Annotated[Path, typer.Option(help="Folder for the archives, such as results/cub200.")],
) -> None:
    """Archive finished runs in a form small enough for a repository; `siesta report` reads archives as well.

    Example: siesta archive runs/cub200 --out results/cub200
    """
    for folder, size in _import_report().archive_runs(folders, out).items():
        console.print(f"{folder}  {size / 1000:,.0f} KB")


def _import_report() -> ModuleType:
    import importlib

    try:
        return importlib.import_module("siesta.experiment.report")
    except ModuleNotFoundError as error:
        raise BadInput(f"reports need {error.name}: pip install 'siesta-learn[report]'") from None
