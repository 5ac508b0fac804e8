"""siesta card: a learner as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from siesta.cli.options import JsonOption, PathArgument
from siesta.cli.output import print_result

__all__ = ["card"]


def card(
    path: PathArgument,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")],
    as_json: JsonOption = False,
) -> None:
    """Write a page about a learner: its classes, its accuracy on held-out samples, its confusions, sleeps and memory.

    Example: siesta card birds.siesta --out birds.html
    """
    from siesta.learner.card_page import write_card

    size = write_card(path, out)
    print_result(f"Wrote {out}: {size / 1e3:.0f} kB.", as_json, bytes=size)
