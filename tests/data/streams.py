"""Data sets without files, for tests of orders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from siesta.data import Dataset, Pictures, Split, Stream


def dataset_of(sizes: Sequence[int], name: str = "made") -> Dataset:
    """Return a data set with these numbers of training pictures of classes `c0`, `c1`, ..., alternating classes."""
    rows = sorted((number, label) for label, size in enumerate(sizes) for number in range(size))
    names = [f"train/c{label}/{number}.jpg" for number, label in rows]
    train = Split(Pictures.from_files(Path("nowhere"), names), names, np.array([y for _, y in rows], np.int32))
    asked = [f"test/c{label}.jpg" for label in range(len(sizes))]
    test = Split(Pictures.from_files(Path("nowhere"), asked), asked, np.arange(len(sizes), dtype=np.int32))
    return Dataset(name, tuple(f"c{label}" for label in range(len(sizes))), train, test)


def classes_in(stream: Stream) -> list[list[int]]:
    """Return the class of each sample for each step."""
    return [stream.dataset.train.labels[step].tolist() for step in stream.steps()]


def comes_once(stream: Stream) -> bool:
    """Return whether every training picture comes exactly once."""
    return sorted(stream.indices.tolist()) == list(range(len(stream.dataset.train)))


def write_names(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path
