"""Output of the commands: results go to stdout, everything else to stderr; labels and paths are never markup."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

__all__ = [
    "INTERRUPTED",
    "PARTLY_DONE",
    "console",
    "err_console",
    "experiment_progress",
    "image_progress",
    "print_json",
    "print_json_line",
    "print_result",
    "sleep_progress",
]

PARTLY_DONE = 6
INTERRUPTED = 130

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


class _Console(Console):
    """Console that shows control characters of text as escapes: a file's name must not command the terminal."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print the objects as `rich.console.Console` does."""
        shown = (thing.translate(_CONTROL) if isinstance(thing, str) else thing for thing in objects)
        super().print(*shown, **options)


console = _Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
err_console = _Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one indented JSON document to stdout."""
    sys.stdout.write(json.dumps(value, allow_nan=False, indent=2) + "\n")


def print_json_line(value: Any) -> None:
    """Print one line of JSON to stdout and flush it."""
    sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")
    sys.stdout.flush()


def print_result(sentence: str, as_json: bool, **values: object) -> None:
    """Print `sentence`, or `values` as JSON."""
    if as_json:
        print_json(values)
    else:
        console.print(sentence)


def image_progress() -> Progress:
    """Return a progress bar for a known number of images."""
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=err_console
    )


def sleep_progress() -> Progress:
    """Return a progress bar for a sleep; its field `text` holds loss, speed and the remaining time."""
    return Progress(
        TextColumn("asleep"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[text]}"),
        console=err_console,
    )


def experiment_progress() -> Progress:
    """Return a progress bar for an experiment; its field `text` holds the current activity of the run."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[text]}"),
        TimeElapsedColumn(),
        console=err_console,
    )
