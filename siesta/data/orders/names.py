"""Files of picture names, one a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from siesta.data.dataset import Dataset
from siesta.errors import BadInput

__all__ = ["named_steps"]


def named_steps(dataset: Dataset, file: Path) -> list[npt.NDArray[np.int64]]:
    """Indices of the training pictures that a file names, in its order, a list for each part between blank lines.

    A label after the name, as published lists have them (`train/n01440764/n01440764_190.JPEG 0`), is left out.
    """
    positions = {name: index for index, name in enumerate(dataset.train.names)}
    steps: list[list[int]] = [[]]
    for line in _lines(file):
        if line:
            name = line if line in positions else line.rpartition(" ")[0].rstrip()
            if name not in positions:
                raise BadInput(f"{file} names '{line[:120]}', which is not a training picture of {dataset.name}")
            steps[-1].append(positions[name])
        else:
            steps.append([])
    found = [np.array(step, dtype=np.int64) for step in steps if step]
    if found and len(np.unique(np.concatenate(found))) < sum(map(len, found)):
        raise BadInput(f"{file} names a picture twice: name each once")
    return found


def _lines(file: Path) -> Iterator[str]:
    try:
        with file.open(encoding="utf-8-sig", errors="surrogateescape") as lines:
            yield from map(str.strip, lines)
    except OSError as error:
        raise BadInput(f"{file} cannot be read ({error.strerror}): give a file of picture names, one a line") from error
