"""Files of image names, one in each line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from siesta.data.dataset import Dataset
from siesta.errors import BadInput

__all__ = ["read_image_list"]


def read_image_list(dataset: Dataset, file: Path) -> list[npt.NDArray[np.int64]]:
    """Return the indices of the training images that a file names, in its order, one array for each block of lines.

    Blank lines separate blocks. A label after the name, as in published lists
    (`train/n01440764/n01440764_190.JPEG 0`), is ignored.
    """
    positions = {name: index for index, name in enumerate(dataset.train.names)}
    steps: list[list[int]] = [[]]
    for line in _lines(file):
        if line:
            name = line if line in positions else line.rpartition(" ")[0].rstrip()
            if name not in positions:
                raise BadInput(f"{file} names '{line[:120]}', which is not a training image of {dataset.name}")
            steps[-1].append(positions[name])
        else:
            steps.append([])
    blocks = [np.array(step, dtype=np.int64) for step in steps if step]
    if blocks and len(np.unique(np.concatenate(blocks))) < sum(map(len, blocks)):
        raise BadInput(f"{file} names an image twice: name each once")
    return blocks


def _lines(file: Path) -> Iterator[str]:
    try:
        with file.open(encoding="utf-8-sig", errors="surrogateescape") as lines:
            yield from map(str.strip, lines)
    except OSError as error:
        raise BadInput(
            f"{file} cannot be read ({error.strerror}): give a file of image names, one in each line"
        ) from error
