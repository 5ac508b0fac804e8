"""`siesta demo`: the tour with live output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from siesta.cli.options import JsonOption
from siesta.cli.output import console, err_console, print_json

if TYPE_CHECKING:
    from siesta.cli.tour import TourStep

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="File to write the learning curve to.")] = Path("siesta-demo.png"),
    seed: Annotated[int, typer.Option(help="Seed of the class order and of the split of the images.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Learn ten digits, two at a time, with and without sleep. Takes about two minutes and no network access.

    Example: siesta demo --out curve.png
    """
    from siesta.cli.tour import save_learning_curve, tour
    from siesta.errors import BadInput
    from siesta.extras import require

    require("torch", "the demo", "demo")
    if not out.parent.is_dir():
        raise BadInput(f"the folder {out.parent} does not exist: create it first")
    steps: list[TourStep] = []
    table = Table(
        "digits so far", "learned", "memory", "never sleeps %", "before sleep %", "after sleep %", "sleep gains"
    )
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err_console) as bar:
        task = bar.add_task("starting", total=1.0)
        for step in tour(seed, notify=lambda text, share: bar.update(task, description=text, completed=share)):
            steps.append(step)
            table.add_row(*_cells(step))
            bar.console.print(
                f"{len(step.classes):>2} digits known: {step.before_sleep:.1f} % awake -> {step.after_sleep:.1f} % "
                f"after sleep (never sleeping: {step.awake_only:.1f} %)"
            )
    save_learning_curve(steps, out)
    if as_json:
        print_json([vars(step) for step in steps])
        return
    console.print(table, soft_wrap=False)
    console.print(f"Learning curve: {out}")
    _print_next_commands()


def _cells(step: TourStep) -> list[str]:
    return [
        str(len(step.classes)),
        str(step.taught),
        f"{step.stored_bytes / 1e3:.0f} KB",
        f"{step.awake_only:.1f}",
        f"{step.before_sleep:.1f}",
        f"{step.after_sleep:.1f}",
        f"{step.after_sleep - step.before_sleep:+.1f}",
    ]


def _print_next_commands() -> None:
    console.print("To use your own images, sort them into one folder per class:")
    for line in (
        "new things.siesta",
        "learn things.siesta FOLDER",
        "sleep things.siesta --minutes 2",
        "predict things.siesta IMAGE",
    ):
        console.print(f"  siesta {line}")
