"""Commands that look after a learner on disk: check, repair."""

from __future__ import annotations

from dataclasses import asdict

import typer

from siesta.cli.learner import JsonOption, PathArgument
from siesta.cli.output import console, print_json
from siesta.errors import Damaged

__all__ = ["check", "repair"]


def check(path: PathArgument, as_json: JsonOption = False) -> None:
    """Look whether every sample and every file of a learner is whole; name what is damaged, change nothing.

    Example: siesta check birds.siesta
    """
    from siesta.care import check as check_learner

    findings = check_learner(path)
    if as_json:
        print_json([asdict(found) for found in findings])
    else:
        for found in findings:
            console.print(found.words)
        console.print(f"siesta repair {path} keeps what is whole." if findings else "whole")
    if findings:
        raise typer.Exit(Damaged.exit_code)


def repair(path: PathArgument, as_json: JsonOption = False) -> None:
    """Keep what is whole of a damaged learner, and say what is lost; nobody may teach it or sleep meanwhile.

    Example: siesta repair birds.siesta
    """
    from siesta.care import repair as repair_learner

    lines = repair_learner(path)
    if as_json:
        print_json(lines)
    else:
        console.print("\n".join(lines) if lines else "whole: there was nothing to repair")
