"""Commands for researchers: run."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from siesta.cli.output import INTERRUPTED, errors, print_json_line, staging
from siesta.errors import BadInput

if TYPE_CHECKING:
    from siesta.data import Dataset
    from siesta.experiment.config import Config
    from siesta.experiment.plan import PlannedRun
    from siesta.experiment.run import Stage

__all__ = ["carry_out", "names", "numbers", "run"]


def run(
    config: Annotated[Path, typer.Argument(help="A TOML file, such as configs/cub200_small.toml.")],
    methods: Annotated[str | None, typer.Option(help="Which of its methods, like siesta,remind.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Seeds in place of its own, like 0,1,2.")] = None,
    orders: Annotated[str | None, typer.Option(help="Which of its orders, like class_incremental,iid.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results; runs/<name> if left out.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="A key of the config to set, like data.path=birds.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would run, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print rows as JSON lines, as they come.")] = False,
) -> None:
    """Run an experiment; stopped or killed, the same command goes on where it was.

    Example: siesta run configs/cub200_small.toml --methods siesta --set data.path=CUB_200_2011
    """
    try:
        from siesta.experiment import load_config
    except ModuleNotFoundError as error:
        raise BadInput(f"experiments need {error.name}: pip install 'siesta-learn[harness]'") from None

    settings = load_config(config, changes or (), names(methods), names(orders), numbers(seeds))
    carry_out(settings, out, dry_run, as_json)


def carry_out(settings: Config, out: Path | None, dry_run: bool, as_json: bool) -> Path:
    """Shows what will run, runs it unless that was all that was asked for, and says where the results are."""
    from siesta.experiment import locked, planned_runs, read_dataset, run_all

    dataset = read_dataset(settings)
    folder = Path("runs") / settings.name if out is None else out
    planned = planned_runs(settings, dataset)
    errors.print(_plan(planned, dataset, folder), soft_wrap=False)
    if dry_run:
        return folder
    with locked(folder), staging() as bar:
        task = bar.add_task("", total=1.0, words="")

        def show(stage: Stage) -> None:
            bar.update(task, description=stage.run, completed=stage.fraction, words=stage.words)

        try:
            for row in run_all(planned, dataset, folder, show):
                if as_json:
                    print_json_line(row)
                else:
                    bar.console.print(_summary(row))
        except KeyboardInterrupt:
            bar.stop()
            errors.print("Stopped: finished steps are safe. Run it again to go on.")
            raise typer.Exit(INTERRUPTED) from None
    errors.print(f"Done: the results are in {folder}")
    return folder


def _plan(planned: list[PlannedRun], dataset: Dataset, folder: Path) -> Table:
    """What will run, and about how long it takes."""
    from siesta.experiment import Stopwatch, estimate, steps_done

    watch = Stopwatch(planned[0].config.data.image_size)
    table = Table(
        "run",
        "steps",
        "samples",
        "updates",
        "about",
        title=f"{planned[0].config.name}: {len(dataset.train):,} pictures to learn, {len(dataset.test):,} to be asked",
        caption="About how long it takes here, if nothing else runs and the pictures are coded already.",
    )
    for some in planned:
        cost = estimate(some, dataset, watch)
        steps, done = len(some.stream.ends), steps_done(some, folder)
        state = f"{steps}" if not done else f"{steps}, {done} done"
        left = cost.seconds * (steps - done) / steps
        row = (some.name, state, f"{len(some.stream):,}", f"{cost.updates:,}", _duration(left) if left else "done")
        table.add_row(*row)
    return table


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else str(timedelta(seconds=round(seconds, -1)))


def _summary(row: dict[str, Any]) -> str:
    return (
        f"{row['run']}  step {row['step'] + 1} {row['phase']:>6}: {row['classes']:,} classes, "
        f"top-1 {row['top1']:.2f} %, top-5 {row['top5']:.2f} %, {row['updates']:,} updates"
    )


def names(text: str | None) -> list[str] | None:
    """Names with commas between them."""
    return None if text is None else [name.strip() for name in text.split(",")]


def numbers(text: str | None) -> list[int] | None:
    """Whole numbers with commas between them."""
    try:
        return None if text is None else [int(number) for number in text.split(",")]
    except ValueError:
        raise BadInput(f"seeds are whole numbers with commas between them, like 0,1,2, not '{text}'") from None
