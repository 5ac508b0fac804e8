"""siesta export: a learner as one ONNX file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from siesta.cli.options import JsonOption, PathArgument
from siesta.cli.output import console, print_json

__all__ = ["export"]


def export(
    path: PathArgument,
    to: Annotated[Path, typer.Option(help="The ONNX file to write.")],
    as_json: JsonOption = False,
) -> None:
    """Write what a learner predicts now into one ONNX file, from pixels to scores, with its labels.

    Example: siesta export birds.siesta --to birds.onnx
    """
    from siesta.learner.export import export_learner

    report = export_learner(path, to)
    if as_json:
        print_json(asdict(report))
    else:
        size = f"{report.bytes / 1e6:.1f} MB"
        console.print(f"Wrote {to}: {report.classes} classes, generation {report.generation}, {size}.")
        if report.rejections:
            console.print(f"The learner's {report.rejections} rejections are not part of it.")
