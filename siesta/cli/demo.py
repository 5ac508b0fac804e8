"""siesta demo: the tour, live."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from siesta.cli.learner import JsonOption
from siesta.cli.output import console, errors, print_json

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="Where to write the learning curve.")] = Path("siesta-demo.png"),
    seed: Annotated[int, typer.Option(help="Another order of classes and split of the pictures.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Watch it learn: ten digits, two at a time, with and without sleep; about two minutes, no network.

    Example: siesta demo --out curve.png
    """
    from siesta.demo import Step, draw, tour
    from siesta.errors import BadInput

    if not out.parent.is_dir():
        raise BadInput(f"the folder {out.parent} does not exist: make it first")
    steps: list[Step] = []
    table = Table(
        "digits so far", "taught", "memory", "never sleeps %", "before sleep %", "after sleep %", "sleep gains"
    )
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors) as bar:
        task = bar.add_task("waking up", total=1.0)
        for step in tour(seed, notice=lambda words, share: bar.update(task, description=words, completed=share)):
            steps.append(step)
            row = (
                str(len(step.classes)),
                str(step.taught),
                f"{step.stored_bytes / 1e3:.0f} KB",
                f"{step.awake_only:.1f}",
                f"{step.before_sleep:.1f}",
                f"{step.after_sleep:.1f}",
                f"{step.after_sleep - step.before_sleep:+.1f}",
            )
            table.add_row(*row)
            bar.console.print(
                f"{row[0]:>2} digits known: {row[4]} % awake -> {row[5]} % after sleep (never sleeping: {row[3]} %)"
            )
    draw(steps, out)
    if as_json:
        print_json([vars(step) for step in steps])
        return
    console.print(table, soft_wrap=False)
    console.print(f"Learning curve: {out}")
    console.print("Try your own pictures, in folders named after what they show:")
    for line in (
        "new things.siesta",
        "learn things.siesta FOLDER",
        "sleep things.siesta --minutes 2",
        "predict things.siesta PICTURE",
    ):
        console.print(f"  siesta {line}")
