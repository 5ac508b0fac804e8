"""Commands for the integrity of a learner on disk: check, repair."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from siesta.cli.options import JsonOption, PathArgument
from siesta.cli.output import console, print_json
from siesta.errors import Damaged

__all__ = ["check", "repair"]


FullOption = Annotated[
    bool, typer.Option("--full", help="Compute the sums of all classes again, not only of some; this takes longer.")
]


def check(path: PathArgument, full: FullOption = False, as_json: JsonOption = False) -> None:
    """Verify every sample and every file of a learner, and list what is damaged. Nothing is changed.

    Example: siesta check birds.siesta
    """
    from siesta.learner.integrity import check as check_learner

    findings = check_learner(path, full=full)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            console.print(finding.words)
        command = f"siesta repair {path}{' --full' if full else ''}"
        console.print(f"To keep everything that is intact: {command}" if findings else "no damage found")
    if findings:
        raise typer.Exit(Damaged.exit_code)


def repair(path: PathArgument, full: FullOption = False, as_json: JsonOption = False) -> None:
    """Repair a damaged learner: keep what is intact and list what is lost. Nothing else may write to it meanwhile.

    Example: siesta repair birds.siesta
    """
    from siesta.learner.integrity import repair as repair_learner

    lines = repair_learner(path, full=full)
    if as_json:
        print_json(lines)
    else:
        console.print("\n".join(lines) if lines else "no damage found: nothing to repair")
