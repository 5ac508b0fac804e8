"""The order in which a dataset's training pictures come."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from siesta.data.dataset import Dataset, Picture
from siesta.errors import BadInput

__all__ = ["Sample", "Stream"]

_CHUNK = 10_000


class Sample(NamedTuple):
    """All that a learner is told: no task, no step."""

    id: str
    picture: Picture
    label: str


@dataclass(frozen=True, eq=False)
class Stream:
    """Training pictures in the order in which they come, each at most once.

    >>> from siesta.data import from_arrays, make_stream
    >>> pixels, numbers = np.zeros((4, 8, 8, 3), np.uint8), np.array([0, 1, 1, 0])
    >>> dataset = from_arrays(pixels, numbers, pixels, numbers, classes=["cat", "dog"])
    >>> stream = make_stream(dataset, "class_incremental", seed=0, classes_per_step=1)
    >>> stream.ends, [sample.label for sample in stream]
    ((2, 4), ['cat', 'cat', 'dog', 'dog'])

    Attributes:
        dataset: Whose pictures they are.
        indices: Into its `train`, (N,).
        ends: Where steps end: there it is tested and slept. The last is N.
        base: Whether the first step is the base step.
    """

    dataset: Dataset
    indices: npt.NDArray[np.int64]
    ends: tuple[int, ...]
    base: bool = False

    def __post_init__(self) -> None:
        rising = all(start < end for start, end in pairwise((0, *self.ends)))
        if not (self.ends and rising and self.ends[-1] == len(self.indices)):
            raise BadInput(f"a stream's steps must have samples and end with its last, not {self.ends[:5]}")

    @classmethod
    def of_steps(cls, dataset: Dataset, steps: Iterable[npt.NDArray[np.int64]], base: bool = False) -> Stream:
        """A stream of these steps; those without samples are left out."""
        kept = [step for step in steps if len(step)]
        if not kept:
            raise BadInput(f"there is nothing to learn in {dataset.name}: no training pictures are left")
        ends = np.cumsum([len(step) for step in kept])
        return cls(dataset, np.concatenate(kept), tuple(int(end) for end in ends), base)

    def steps(self) -> Iterator[npt.NDArray[np.int64]]:
        """Indices of one step after the other."""
        for start, end in pairwise((0, *self.ends)):
            yield self.indices[start:end]

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[Sample]:
        train = self.dataset.train
        for index in map(int, self.indices):
            yield Sample(train.names[index], train.pictures[index], self.dataset.classes[train.labels[index]])

    @cached_property
    def hash(self) -> str:
        """SHA-256 over names and labels in their order, and the ends of steps; the same on every machine."""
        train, classes = self.dataset.train, self.dataset.classes
        digest = hashlib.sha256()
        for start in range(0, len(self.indices), _CHUNK):
            chunk = self.indices[start : start + _CHUNK]
            text = "".join(f"{train.names[i]}\0{classes[train.labels[i]]}\0" for i in chunk)
            digest.update(text.encode("utf-8", "surrogateescape"))
        digest.update(" ".join(map(str, self.ends)).encode())
        return digest.hexdigest()
