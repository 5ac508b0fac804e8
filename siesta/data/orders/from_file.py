"""An order that is read from a file."""

from __future__ import annotations

from pathlib import Path

from siesta.data.dataset import Dataset
from siesta.data.orders.names import read_image_list
from siesta.data.stream import Stream

__all__ = ["from_file"]


def from_file(dataset: Dataset, seed: int, *, file: Path, base: bool = False) -> Stream:
    """Return the images in the order in which a file names them, one in each line; a blank line ends a step.

    Args:
        dataset: The data set; images that the file does not name are left out.
        seed: Unused; every order takes one.
        file: The file of names.
        base: Whether the first step is the base step.
    """
    del seed
    return Stream.from_steps(dataset, read_image_list(dataset, file), base)
