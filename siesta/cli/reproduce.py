"""The command `siesta reproduce`, which runs the paper's experiments."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from siesta.cli.experiment import parse_names, parse_seeds, run_config
from siesta.cli.output import console, err_console, print_json
from siesta.errors import BadInput

if TYPE_CHECKING:
    from siesta.experiment.paper.compare import PaperComparison
    from siesta.experiment.paper.configs import Requirements
    from siesta.experiment.paper.tables import PublishedRow

__all__ = ["reproduce"]

_NOT_PUBLISHED = "Not the published experiment"
_TABLE_WIDTH = 130  # narrower, numbers would wrap
_ALWAYS_SHOWN = ("mu", "alpha", "parameters", "memory", "updates")


def reproduce(
    name: Annotated[str | None, typer.Argument(help="An experiment of the paper; --list shows them.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show every experiment and what it needs, and stop.")] = False,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data set, or a folder that contains it under its name.")
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="File of pre-trained weights, a folder with several, or 'random' for a trial run."),
    ] = None,
    codec_pictures: Annotated[
        Path | None, typer.Option(help="Folder of ImageNet images for the codec, where there are no base classes.")
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Methods of the config to run, such as siesta,remind.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Seeds to use instead of the config's, such as 0,1,2.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results; runs/<name> by default.")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="A key of the config to change; the result is not the published experiment."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would run, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison, or the list, as JSON.")] = False,
) -> None:
    """Run an experiment of the paper and print the results beside the published ones.

    Example: siesta reproduce cub200 --data CUB_200_2011 --weights swav.pth --codec-pictures imagenet
    """
    try:
        from siesta.experiment.paper.compare import compare_with_paper
        from siesta.experiment.paper.configs import prepare_config
    except ModuleNotFoundError as error:
        raise BadInput(f"experiments need {error.name}: pip install 'siesta-learn[harness]'") from None

    if listed:
        _print_requirements(data, as_json)
        return
    if name is None:
        raise BadInput("name an experiment of the paper; siesta reproduce --list shows them")
    config, missing = prepare_config(
        name, data, weights, codec_pictures, changes or (), parse_names(methods), parse_seeds(seeds)
    )
    for method, reason in missing.items():
        err_console.print(f"{method}: {reason}")
    changed = [*(changes or ()), *(["random weights"] if weights == "random" else [])]
    if changed:
        err_console.print(f"{_NOT_PUBLISHED}: {', '.join(changed)}")
    folder = run_config(config, out, dry_run, as_json=False)
    if not dry_run:
        _print_comparisons(list(compare_with_paper(config, folder, missing)), changed, as_json)


def _print_requirements(data: Path | None, as_json: bool) -> None:
    """Print every experiment, what it needs and what was published."""
    from siesta.experiment.paper.configs import requirements

    if data is not None and not data.is_dir():
        raise BadInput(f"there is no folder {data}: give the folder that contains the data sets as --data")
    experiments = list(requirements(data))
    if as_json:
        print_json([_requirements_json(experiment) for experiment in experiments])
        return
    for experiment in experiments:
        found = experiment.found
        location = f"not found at {experiment.expected}" if found is None else f"found at {found}"
        rows = ", ".join(_describe_row(order, method, row) for order, method, row in experiment.rows)
        console.print(f"{experiment.name}: {', '.join(experiment.shows)}", style="bold")
        console.print(f"  data set: {experiment.dataset}, {location}")
        for file, exists in experiment.files:
            console.print(f"  also: {file}, {'found' if exists else 'not found'}")
        console.print(f"  published, mu / alpha in %: {rows or 'in the figure only'}")


def _describe_row(order: str, method: str, row: PublishedRow) -> str:
    """Return a published row as text: the accuracies, and its other values in brackets."""
    from siesta.experiment.paper.compare import column_titles

    accuracies = "" if row.alpha is None else f" {_printed(row, 'mu') or '-'} / {_printed(row, 'alpha')}"
    others = [
        f"{title}: {text}"
        for name, title in column_titles(row).items()
        if name not in ("mu", "alpha") and (text := _printed(row, name))
    ]
    in_order = "" if order == "class_incremental" else f" in {order}"
    return f"{method}{in_order}{accuracies}" + (f" ({'; '.join(others)})" if others else "")


def _requirements_json(experiment: Requirements) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "shows": experiment.shows,
        "dataset": experiment.dataset,
        "looked": str(experiment.expected),
        "found": None if experiment.found is None else str(experiment.found),
        "also": [{"what": file, "found": exists} for file, exists in experiment.files],
        "published": [
            {"order": order, "method": method, "row": _published_values(row)} for order, method, row in experiment.rows
        ],
    }


def _published_values(row: PublishedRow) -> dict[str, Any]:
    return {name: value for name, value in asdict(row).items() if value is not None and name != "printed"}


def _print_comparisons(comparisons: list[PaperComparison], changed: list[str], as_json: bool) -> None:
    """Print our values above the paper's; optional columns are left out if no published row has them."""
    if as_json:
        print_json([_comparison_json(comparison) | {"changed": changed} for comparison in comparisons])
        return
    from siesta.experiment.paper.compare import column_titles

    published = [comparison.published for comparison in comparisons if comparison.published]
    titles = column_titles(published[0] if published else None)
    shown = [name for name in titles if name in _ALWAYS_SHOWN or any(_printed(row, name) for row in published)]
    title = "Ours beside the paper's" + (f". {_NOT_PUBLISHED}: {', '.join(changed)}" if changed else "")
    table = Table("method", "order", "", *(titles[name] for name in shown), "note", title=title)
    for comparison in comparisons:
        ours = (str(comparison.ours[name]) if name in comparison.ours else "" for name in shown)
        seeds = f"{comparison.runs} seeds" if comparison.runs > 1 else ""
        table.add_row(comparison.method, comparison.order, "ours", *ours, comparison.note or seeds)
        row = comparison.published
        if row is not None:
            source = f"{row.table}: {row.method}"
            table.add_row("", "", "paper", *(_printed(row, name) for name in shown), source)
    Console(markup=False, emoji=False, highlight=False, width=max(console.width, _TABLE_WIDTH)).print(table)


def _printed(row: PublishedRow, column: str) -> str:
    """Return a published value as printed in the paper; "" if there is none."""
    value = getattr(row, column, None)
    std = getattr(row, f"{column}_std", None)
    return "" if value is None else f"{value:.2f}" + (f"±{std:.2f}" if std is not None else "")


def _comparison_json(comparison: PaperComparison) -> dict[str, Any]:
    row = {} if comparison.published is None else _published_values(comparison.published)
    ours = {name: {"mean": found.mean, "std": found.std} for name, found in comparison.ours.items()}
    return {
        "method": comparison.method,
        "order": comparison.order,
        "runs": comparison.runs,
        "note": comparison.note,
        "ours": ours,
        "published": row or None,
    }
