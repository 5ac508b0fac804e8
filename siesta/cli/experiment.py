"""The command `siesta run`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from siesta.cli.output import INTERRUPTED, err_console, experiment_progress, print_json_line
from siesta.errors import BadInput

if TYPE_CHECKING:
    from siesta.data import Dataset
    from siesta.experiment.config import Config
    from siesta.experiment.plan import PlannedRun
    from siesta.experiment.run import RunStatus

__all__ = ["parse_names", "parse_seeds", "run", "run_config"]


def run(
    config: Annotated[Path, typer.Argument(help="A TOML file, such as configs/cub200_small.toml.")],
    methods: Annotated[str | None, typer.Option(help="Methods of the config to run, such as siesta,remind.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Seeds to use instead of the config's, such as 0,1,2.")] = None,
    orders: Annotated[
        str | None, typer.Option(help="Orders of the config to run, such as class_incremental,iid.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results; runs/<name> by default.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="A key of the config to change, such as data.path=birds.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would run, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print rows as JSON lines as they are made.")] = False,
) -> None:
    """Run an experiment; if it is stopped or killed, the same command resumes it.

    Example: siesta run configs/cub200_small.toml --methods siesta --set data.path=CUB_200_2011
    """
    try:
        from siesta.experiment import load_config
    except ModuleNotFoundError as error:
        raise BadInput(f"experiments need {error.name}: pip install 'siesta-learn[harness]'") from None

    settings = load_config(config, changes or (), parse_names(methods), parse_names(orders), parse_seeds(seeds))
    run_config(settings, out, dry_run, as_json)


def run_config(settings: Config, out: Path | None, dry_run: bool, as_json: bool) -> Path:
    """Print the plan of an experiment, run it unless this is a dry run, and return the folder of its results."""
    from siesta.experiment import experiment_lock, planned_runs, read_dataset, run_all

    dataset = read_dataset(settings)
    folder = Path("runs") / settings.name if out is None else out
    planned = planned_runs(settings, dataset)
    err_console.print(_plan_table(planned, dataset, folder), soft_wrap=False)
    if dry_run:
        return folder
    with experiment_lock(folder), experiment_progress() as bar:
        task = bar.add_task("", total=1.0, text="")

        def show(status: RunStatus) -> None:
            bar.update(task, description=status.run, completed=status.fraction, text=status.activity)

        try:
            for row in run_all(planned, dataset, folder, show):
                if as_json:
                    print_json_line(row)
                else:
                    bar.console.print(_row_summary(row))
        except KeyboardInterrupt:
            bar.stop()
            err_console.print("Stopped: finished steps are saved. Run the same command again to resume.")
            raise typer.Exit(INTERRUPTED) from None
    err_console.print(f"Done: the results are in {folder}")
    return folder


def _plan_table(planned: list[PlannedRun], dataset: Dataset, folder: Path) -> Table:
    """Return a table of the planned runs, their progress and about how long each takes."""
    from siesta.experiment import Stopwatch, completed_steps, estimate_cost

    stopwatch = Stopwatch(planned[0].config.data.image_size)
    table = Table(
        "run",
        "steps",
        "samples",
        "updates",
        "about",
        title=f"{planned[0].config.name}: {len(dataset.train):,} training and {len(dataset.test):,} test images",
        caption="Approximate time on this machine if nothing else runs and all images are encoded already.",
    )
    for run in planned:
        cost = estimate_cost(run, dataset, stopwatch)
        steps = len(run.stream.ends)
        done = completed_steps(run, folder)
        remaining = cost.seconds * (steps - done) / steps
        table.add_row(
            run.name,
            f"{steps}, {done} done" if done else f"{steps}",
            f"{len(run.stream):,}",
            f"{cost.updates:,}",
            _duration(remaining) if remaining else "done",
        )
    return table


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else str(timedelta(seconds=round(seconds, -1)))


def _row_summary(row: dict[str, Any]) -> str:
    return (
        f"{row['run']}  step {row['step'] + 1} {row['phase']:>6}: {row['classes']:,} classes, "
        f"top-1 {row['top1']:.2f} %, top-5 {row['top5']:.2f} %, {row['updates']:,} updates"
    )


def parse_names(text: str | None) -> list[str] | None:
    """Return the names in a comma-separated list."""
    return None if text is None else [name.strip() for name in text.split(",")]


def parse_seeds(text: str | None) -> list[int] | None:
    """Return the numbers in a comma-separated list."""
    try:
        return None if text is None else [int(number) for number in text.split(",")]
    except ValueError:
        raise BadInput(f"seeds are whole numbers separated by commas, such as 0,1,2, not '{text}'") from None
