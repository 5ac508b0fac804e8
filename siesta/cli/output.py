"""How commands talk: results to stdout, everything else to stderr; labels and paths are text, never markup."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

__all__ = [
    "DONE_IN_PART",
    "INTERRUPTED",
    "console",
    "counting",
    "errors",
    "print_json",
    "print_json_line",
    "say",
    "sleeping",
    "staging",
]

DONE_IN_PART = 6
INTERRUPTED = 130

console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
errors = Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON document on stdout, for programs."""
    sys.stdout.write(json.dumps(value, allow_nan=False, indent=2) + "\n")


def print_json_line(value: Any) -> None:
    """One JSON line on stdout, at once."""
    sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")
    sys.stdout.flush()


def say(words: str, as_json: bool, **facts: object) -> None:
    """One sentence for people, or the same as JSON."""
    if as_json:
        print_json(facts)
    else:
        console.print(words)


def counting() -> Progress:
    """A bar for a known number of pictures."""
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=errors
    )


def sleeping() -> Progress:
    """A bar for a sleep: loss, speed and the time left."""
    return Progress(
        TextColumn("asleep"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[words]}"),
        console=errors,
    )


def staging() -> Progress:
    """A bar for an experiment: which run, and what it is doing."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[words]}"),
        TimeElapsedColumn(),
        console=errors,
    )
