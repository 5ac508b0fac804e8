"""Commands pack and take: a sleep on another machine."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from siesta.cli.options import JsonOption, PathArgument
from siesta.cli.output import print_json, print_result

__all__ = ["pack", "take"]


def pack(
    path: PathArgument,
    file: Annotated[Path, typer.Option("--for-sleep", help="The file to write.", metavar="FILE")],
    bottom: Annotated[
        bool, typer.Option("--bottom/--no-bottom", help="Pack the frozen layers; a machine that slept for it has them.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Write what a sleep needs into one file, for `siesta sleep FILE` on another machine; no pictures.

    Example: siesta pack birds.siesta --for-sleep birds.pack
    """
    from siesta.learner.pack import pack_learner

    report = pack_learner(path, file, bottom=bottom)
    if as_json:
        print_json(asdict(report))
        return
    size = f"{report.bytes / 1e6:.1f} MB"
    contents = f"{report.samples:,} samples of {report.classes:,} classes, generation {report.generation}"
    print_result(
        f"Wrote {file}: {contents}, {size}. Run siesta sleep {file} elsewhere, siesta take {path} {file}.", False
    )


def take(
    path: PathArgument,
    file: Annotated[Path, typer.Argument(help="A pack that has slept.", metavar="FILE")],
    as_json: JsonOption = False,
) -> None:
    """Use the weights of a sleep on another machine; what was learned and edited meanwhile is counted in.

    Example: siesta take birds.siesta birds.pack
    """
    from siesta.learner.take import take_sleep

    report = take_sleep(path, file)
    print_result(report.summary(), as_json, generation=report.generation, used=report.used)
