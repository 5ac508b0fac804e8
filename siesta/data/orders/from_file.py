"""An order that somebody wrote down."""

from __future__ import annotations

from pathlib import Path

from siesta.data.dataset import Dataset
from siesta.data.orders.names import named_steps
from siesta.data.stream import Stream

__all__ = ["from_file"]


def from_file(dataset: Dataset, seed: int, *, file: Path, base: bool = False) -> Stream:
    """Pictures come as a file names them, one a line; a blank line ends a step.

    Args:
        dataset: Whose pictures come; those that are not named are left out.
        seed: Changes nothing here.
        file: The file of names.
        base: Whether the first step is the base step.
    """
    del seed  # every order is asked for one
    return Stream.of_steps(dataset, named_steps(dataset, file), base)
