"""A data set and an order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from siesta.data import Dataset, Pictures, Split, Stream
from siesta.errors import BadInput

__all__ = ["backwards", "colour_list"]

_SIDE = 32


def colour_list(path: Path, *, each: int = 5) -> Dataset:
    """Read a text file with a class in each line, as `name red green blue`; pictures are noise around the colour.

    Args:
        path: The file.
        each: Training pictures of each class; there are half as many for testing.
    """
    try:
        lines = [line.split() for line in path.read_text("utf-8").splitlines()]
        colours = {name: np.array([int(value) for value in values]) for name, *values in lines}
        splits = [_split(part, colours, count) for part, count in (("train", each), ("test", each // 2))]
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read: colour_list should look like lines of 'red 200 30 30'") from error
    return Dataset("colour_list", tuple(colours), *splits)


def _split(part: str, colours: dict[str, npt.NDArray[np.int64]], count: int) -> Split:
    names = [f"{part}/{name}/{number}" for name in colours for number in range(count)]
    labels = np.repeat(np.arange(len(colours), dtype=np.int32), count)
    pixels = np.empty((len(names), _SIDE, _SIDE, 3), np.uint8)
    for row, (name, label) in enumerate(zip(names, labels, strict=True)):
        noise = np.random.default_rng(list(name.encode())).integers(0, 56, (_SIDE, _SIDE, 3))
        pixels[row] = (list(colours.values())[label] + noise).clip(0, 255)
    return Split(Pictures.from_array(pixels), names, labels)


def backwards(dataset: Dataset, seed: int, *, classes_per_step: int = 1) -> Stream:
    """Return the classes from the last to the first, the pictures of a step shuffled."""
    if seed < 0:
        raise BadInput(f"a seed must be 0 or more, not {seed}")
    rng = np.random.default_rng(seed)
    classes = np.arange(len(dataset.classes))[::-1]
    parts = [classes[start : start + classes_per_step] for start in range(0, len(classes), classes_per_step)]
    steps = [rng.permutation(np.flatnonzero(np.isin(dataset.train.labels, part))) for part in parts]
    return Stream.from_steps(dataset, steps)
