"""Pictures with labels, in a part to learn from and a part to be tested on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias, overload

import numpy as np
import numpy.typing as npt

from siesta.data.shuffling import shuffled
from siesta.errors import BadInput

__all__ = ["Dataset", "Picture", "Pictures", "Split", "by_class", "held_out", "some_classes"]

Picture: TypeAlias = Path | npt.NDArray[np.uint8]
"""A file, or pixels (H, W, 3)."""

_HELD_OUT = 1  # purpose of a random choice


class Pictures(Sequence[Picture]):
    """Pictures that come into being when asked for: a million paths are only their names until then."""

    def __init__(self, length: int, make: Callable[[int], Picture]) -> None:
        self._length = length
        self._make = make

    @classmethod
    def of_files(cls, folder: Path, names: Sequence[str]) -> Pictures:
        """Files of `folder` by their relative names."""
        return cls(len(names), partial(_file, folder, names))

    @classmethod
    def of_stack(cls, stack: npt.NDArray[np.uint8]) -> Pictures:
        """Pixels (N, H, W, 3); a view or a mapped file will do, each picture is copied when asked for."""
        return cls(len(stack), partial(_pixels, stack))

    @classmethod
    def picked(cls, pictures: Sequence[Picture], indices: npt.NDArray[np.int64]) -> Pictures:
        """Some pictures of others, in the order of `indices` (N,)."""
        return cls(len(indices), partial(_picked, pictures, indices))

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Picture: ...
    @overload
    def __getitem__(self, index: slice) -> list[Picture]: ...
    def __getitem__(self, index: int | slice) -> Picture | list[Picture]:
        if isinstance(index, slice):
            return [self._make(i) for i in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._make(int(index) % self._length)


def _file(folder: Path, names: Sequence[str], index: int) -> Picture:
    return folder / names[index]


def _pixels(stack: npt.NDArray[np.uint8], index: int) -> Picture:
    return np.array(stack[index], order="C")


def _picked(pictures: Sequence[Picture], indices: npt.NDArray[np.int64], index: int) -> Picture:
    return pictures[int(indices[index])]


@dataclass(frozen=True, eq=False)
class Split:
    """One part of a dataset.

    Attributes:
        pictures: Files or pixels (H, W, 3), made when asked for.
        names: A stable id of each, such as its relative path.
        labels: Index of each one's class in the dataset's `classes`, (N,).
    """

    pictures: Sequence[Picture]
    names: Sequence[str]
    labels: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        if not len(self.pictures) == len(self.names) == len(self.labels):
            counts = f"{len(self.pictures)}, {len(self.names)} and {len(self.labels)}"
            raise BadInput(f"pictures, names and labels must be as many: there are {counts}")

    def __len__(self) -> int:
        return len(self.labels)

    def pick(self, indices: npt.NDArray[np.int64]) -> Split:
        """Only these, in this order."""
        names = [self.names[i] for i in indices]
        return Split(Pictures.picked(self.pictures, indices), names, self.labels[indices])

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over names, labels and each file's size, or pixels: for caches. It asks the disk about every file."""
        digest = hashlib.sha256(np.ascontiguousarray(self.labels, dtype="<i4").tobytes())
        for name, picture in zip(self.names, self.pictures, strict=True):
            digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
            digest.update(_content(picture) + b"\0")
        return digest.hexdigest()


def _content(picture: Picture) -> bytes:
    if isinstance(picture, np.ndarray):
        return str(picture.shape).encode() + picture.tobytes()
    try:
        return str(picture.stat().st_size).encode()
    except OSError as error:
        raise BadInput(f"{picture} cannot be read ({error.strerror}): put the file there again") from error


@dataclass(frozen=True, eq=False)
class Dataset:
    """What is on disk.

    Attributes:
        name: What it is called in results.
        classes: Labels, in the order in which they come when they come class by class.
        train: What is learned from.
        test: What is asked about.
    """

    name: str
    classes: tuple[str, ...]
    train: Split
    test: Split

    def __post_init__(self) -> None:
        if len(set(self.classes)) < len(self.classes):
            raise BadInput(f"{self.name} has two classes of the same name: give each its own")
        for part in (self.train, self.test):
            if len(part) and not 0 <= part.labels.min() <= part.labels.max() < len(self.classes):
                raise BadInput(
                    f"{self.name} has labels that are not 0..{len(self.classes) - 1}: it has that many classes"
                )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over classes and both parts."""
        parts = [*self.classes, self.train.fingerprint, self.test.fingerprint]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def held_out(dataset: Dataset, share: float, seed: int) -> Dataset:
    """A part of every class's training pictures in the test set's place, for searches that must never see that.

    Args:
        dataset: What to divide.
        share: Part of each class to hold out; a class of two or more keeps at least one on either side, a class of
            one is only learned.
        seed: Whose choice it is.
    """
    if not 0 < share < 1:
        raise BadInput(f"the share to hold out lies between 0 and 1, not {share}")
    kept, asked = [], []
    for label, indices in enumerate(by_class(dataset.train.labels, len(dataset.classes))):
        count = min(max(round(share * len(indices)), 1), len(indices) - 1) if len(indices) else 0
        mixed = shuffled(indices, seed, _HELD_OUT, label)
        asked.append(mixed[:count])
        kept.append(mixed[count:])
    train, test = (dataset.train.pick(np.sort(np.concatenate(part))) for part in (kept, asked))
    return replace(dataset, name=f"{dataset.name}-held-out", train=train, test=test)


def some_classes(dataset: Dataset, count: int) -> Dataset:
    """Only the first `count` classes, as the paper does with 300 of ImageNet's."""
    if not 0 < count <= len(dataset.classes):
        raise BadInput(f"{dataset.name} has {len(dataset.classes)} classes: choose 1 to that many of them, not {count}")
    parts = (part.pick(np.flatnonzero(part.labels < count)) for part in (dataset.train, dataset.test))
    return Dataset(dataset.name, dataset.classes[:count], *parts)


def by_class(labels: npt.NDArray[np.int32], classes: int) -> Iterator[npt.NDArray[np.int64]]:
    """Indices of each class's pictures in their order, class after class; of some there may be none."""
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(classes + 1))
    for start, end in pairwise(bounds):
        yield order[start:end]
