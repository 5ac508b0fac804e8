"""The training images of a data set in the order in which a learner gets them."""

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
    """What a learner gets: neither task nor step."""

    id: str
    picture: Picture
    label: str


@dataclass(frozen=True, eq=False)
class Stream:
    """Training images in an order, each at most once.

    >>> from siesta.data import from_arrays, make_stream
    >>> pixels, numbers = np.zeros((4, 8, 8, 3), np.uint8), np.array([0, 1, 1, 0])
    >>> dataset = from_arrays(pixels, numbers, pixels, numbers, classes=["cat", "dog"])
    >>> stream = make_stream(dataset, "class_incremental", seed=0, classes_per_step=1)
    >>> stream.ends, [sample.label for sample in stream]
    ((2, 4), ['cat', 'cat', 'dog', 'dog'])

    Attributes:
        dataset: The data set.
        indices: Indices of its training images, (N,).
        ends: Ends of the steps, after which the learner sleeps and is tested; the last is N.
        base: Whether the first step is the base step.
    """

    dataset: Dataset
    indices: npt.NDArray[np.int64]
    ends: tuple[int, ...]
    base: bool = False

    def __post_init__(self) -> None:
        increasing = all(start < end for start, end in pairwise((0, *self.ends)))
        if not (self.ends and increasing and self.ends[-1] == len(self.indices)):
            raise BadInput(f"the ends of steps must increase up to the number of samples, not {self.ends[:5]}")

    @classmethod
    def from_steps(cls, dataset: Dataset, steps: Iterable[npt.NDArray[np.int64]], base: bool = False) -> Stream:
        """Return a stream of these steps, without empty ones."""
        nonempty = [step for step in steps if len(step)]
        if not nonempty:
            raise BadInput(f"the stream has no training images of {dataset.name}: choose other options")
        ends = np.cumsum([len(step) for step in nonempty])
        return cls(dataset, np.concatenate(nonempty), tuple(int(end) for end in ends), base)

    def steps(self) -> Iterator[npt.NDArray[np.int64]]:
        """Yield the indices of each step."""
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
        """SHA-256 over names and labels in order and the ends of steps, the same on all machines."""
        train, classes = self.dataset.train, self.dataset.classes
        digest = hashlib.sha256()
        for start in range(0, len(self.indices), _CHUNK):
            chunk = self.indices[start : start + _CHUNK]
            text = "".join(f"{train.names[i]}\0{classes[train.labels[i]]}\0" for i in chunk)
            digest.update(text.encode("utf-8", "surrogateescape"))
        digest.update(" ".join(map(str, self.ends)).encode())
        return digest.hexdigest()
