"""The command that runs the paper's experiments: reproduce."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from siesta.cli.experiment import carry_out, names, numbers
from siesta.cli.output import console, errors, print_json
from siesta.errors import BadInput

if TYPE_CHECKING:
    from siesta.experiment.beside import Line
    from siesta.experiment.paper import Needs
    from siesta.experiment.published import Row

__all__ = ["reproduce"]


def reproduce(
    name: Annotated[str | None, typer.Argument(help="An experiment of the paper; --list shows them.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show every experiment and what it needs, and stop.")] = False,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data set; for --list, one that has them by name.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="File of pre-trained weights, a folder of several, or random to try it.")
    ] = None,
    codec_pictures: Annotated[
        Path | None, typer.Option(help="Folder of ImageNet pictures for the codec, where there are no base classes.")
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Which of its methods, like siesta,remind.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Seeds in place of its own, like 0,1,2.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results; runs/<name> if left out.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="A key to set; what comes out is not the published experiment.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would run, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison, or the list, as JSON.")] = False,
) -> None:
    """Run an experiment of the paper and set the results beside the published ones.

    Example: siesta reproduce cub200 --data CUB_200_2011 --weights swav.pth --codec-pictures imagenet
    """
    try:
        from siesta.experiment.beside import beside
        from siesta.experiment.paper import needs, prepared
    except ModuleNotFoundError as error:
        raise BadInput(f"experiments need {error.name}: pip install 'siesta-learn[harness]'") from None

    if listed:
        if data is not None and not data.is_dir():
            raise BadInput(f"there is no folder {data}: give the one that has the data sets by name as --data")
        _show_list(list(needs(data)), as_json)
        return
    if name is None:
        raise BadInput("name an experiment of the paper; siesta reproduce --list shows them")
    config, missing = prepared(name, data, weights, codec_pictures, changes or (), names(methods), numbers(seeds))
    for method, why in missing.items():
        errors.print(f"{method}: {why}")
    changed = [*(changes or ()), *(["random weights"] if weights == "random" else [])]
    if changed:
        errors.print(f"{_CHANGED}: {', '.join(changed)}")
    folder = carry_out(config, out, dry_run, as_json=False)
    if not dry_run:
        _show_lines(list(beside(config, folder, missing)), changed, as_json)


_CHANGED = "Not the published experiment"


def _show_list(every: list[Needs], as_json: bool) -> None:
    if as_json:
        print_json([_needs(some) for some in every])
        return
    for some in every:
        where = f"not found at {some.looked}" if some.found is None else f"found at {some.found}"
        told = ", ".join(_told(order, method, row) for order, method, row in some.rows)
        console.print(f"{some.name}: {', '.join(some.shows)}", style="bold")
        console.print(f"  data set: {some.dataset}, {where}")
        for what, there in some.also:
            console.print(f"  also: {what}, {'found' if there else 'not found'}")
        console.print(f"  published, mu / alpha in %: {told or 'in the figure only'}")
        if some.later:
            console.print(f"  not here yet: {', '.join(some.later)}")


def _told(order: str, method: str, row: Row) -> str:
    """A published row in a few words: the accuracies, and in brackets what else it has."""
    from siesta.experiment.beside import columns

    accuracies = "" if row.alpha is None else f" {_printed(row, 'mu') or '-'} / {_printed(row, 'alpha')}"
    others = [
        f"{words}: {text}"
        for name, words in columns(row).items()
        if name not in ("mu", "alpha") and (text := _printed(row, name))
    ]
    where = "" if order == "class_incremental" else f" in {order}"
    return f"{method}{where}{accuracies}" + (f" ({'; '.join(others)})" if others else "")


def _needs(some: Needs) -> dict[str, Any]:
    return {
        "experiment": some.name,
        "shows": some.shows,
        "dataset": some.dataset,
        "looked": str(some.looked),
        "found": None if some.found is None else str(some.found),
        "also": [{"what": what, "found": there} for what, there in some.also],
        "published": [{"order": order, "method": method, "row": _values(row)} for order, method, row in some.rows],
        "not_here_yet": some.later,
    }


def _values(row: Row) -> dict[str, Any]:
    return {name: value for name, value in asdict(row).items() if value is not None and name != "printed"}


def _show_lines(lines: list[Line], changed: list[str], as_json: bool) -> None:
    """Ours over the paper's, column by column; columns that have no published value are left out where none has."""
    if as_json:
        print_json([_line(line) | {"changed": changed} for line in lines])
        return
    from siesta.experiment.beside import columns

    names = columns(next((line.published for line in lines if line.published), None))
    shown = [name for name in names if name in _ALWAYS or any(_printed(line.published, name) for line in lines)]
    title = "Ours beside the paper's" + (f". {_CHANGED}: {', '.join(changed)}" if changed else "")
    table = Table("method", "order", "", *(names[name] for name in shown), "note", title=title)
    for line in lines:
        ours = (str(line.ours[name]) if name in line.ours else "" for name in shown)
        seeds = f"{line.runs} seeds" if line.runs > 1 else ""
        table.add_row(line.method, line.order, "ours", *ours, line.note or seeds)
        if line.published is not None:
            where = f"{line.published.table}: {line.published.method}"
            table.add_row("", "", "paper", *(_printed(line.published, name) for name in shown), where)
    Console(markup=False, emoji=False, highlight=False, width=max(console.width, _WIDTH)).print(table)


_WIDTH = 130  # of a comparison; numbers that wrap cannot be read
_ALWAYS = ("mu", "alpha", "parameters", "memory", "updates")


def _printed(row: Row | None, column: str) -> str:
    """A published value as it is printed."""
    value, std = getattr(row, column, None), getattr(row, f"{column}_std", None)
    return "" if value is None else f"{value:.2f}" + (f"±{std:.2f}" if std is not None else "")


def _line(line: Line) -> dict[str, Any]:
    row = {} if line.published is None else _values(line.published)
    ours = {name: {"mean": some.mean, "std": some.std} for name, some in line.ours.items()}
    return {"method": line.method, "order": line.order, "runs": line.runs, "note": line.note} | {
        "ours": ours,
        "published": row or None,
    }
