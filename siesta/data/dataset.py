"""Labelled images in a training split and a test split."""

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
from siesta.rng import Purpose

__all__ = ["Dataset", "Picture", "Pictures", "Split", "first_classes", "first_images", "held_out", "indices_by_class"]

Picture: TypeAlias = Path | npt.NDArray[np.uint8]
"""A file, or pixels (H, W, 3)."""


class Pictures(Sequence[Picture]):
    """A lazy sequence of images: each is created when it is accessed."""

    def __init__(self, length: int, make: Callable[[int], Picture]) -> None:
        self._length = length
        self._make = make

    @classmethod
    def from_files(cls, folder: Path, names: Sequence[str]) -> Pictures:
        """Return the files of a folder with these relative names."""
        return cls(len(names), partial(_file, folder, names))

    @classmethod
    def from_array(cls, pixels: npt.NDArray[np.uint8]) -> Pictures:
        """Return the images of an array (N, H, W, 3), which may be a view; each is copied when it is accessed."""
        return cls(len(pixels), partial(_copy_pixels, pixels))

    @classmethod
    def subset(cls, pictures: Sequence[Picture], indices: npt.NDArray[np.int64]) -> Pictures:
        """Return the images at `indices` (N,), in this order."""
        return cls(len(indices), partial(_at_index, pictures, indices))

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


def _copy_pixels(pixels: npt.NDArray[np.uint8], index: int) -> Picture:
    return np.array(pixels[index], order="C")


def _at_index(pictures: Sequence[Picture], indices: npt.NDArray[np.int64], index: int) -> Picture:
    return pictures[int(indices[index])]


@dataclass(frozen=True, eq=False)
class Split:
    """The training or test part of a data set.

    Attributes:
        pictures: Files or pixels (H, W, 3).
        names: A stable id of each image, such as its relative path.
        labels: Index of each image's class in `Dataset.classes`, (N,).
    """

    pictures: Sequence[Picture]
    names: Sequence[str]
    labels: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        if not len(self.pictures) == len(self.names) == len(self.labels):
            counts = f"{len(self.pictures)}, {len(self.names)} and {len(self.labels)}"
            raise BadInput(f"images, names and labels must be equal in number, not {counts}")

    def __len__(self) -> int:
        return len(self.labels)

    def subset(self, indices: npt.NDArray[np.int64]) -> Split:
        """Return the split of the images at `indices` (N,), in this order."""
        names = [self.names[i] for i in indices]
        return Split(Pictures.subset(self.pictures, indices), names, self.labels[indices])

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over names, labels and the size of each file (or its pixels), a key for caches."""
        digest = hashlib.sha256(np.ascontiguousarray(self.labels, dtype="<i4").tobytes())
        for name, picture in zip(self.names, self.pictures, strict=True):
            digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
            digest.update(_content_key(picture) + b"\0")
        return digest.hexdigest()


def _content_key(picture: Picture) -> bytes:
    if isinstance(picture, np.ndarray):
        return str(picture.shape).encode() + picture.tobytes()
    try:
        return str(picture.stat().st_size).encode()
    except OSError as error:
        raise BadInput(f"{picture} cannot be read ({error.strerror}): restore the file") from error


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set.

    Attributes:
        name: Its name in results.
        classes: Labels; their order is the default order of class-incremental streams.
        train: Training images.
        test: Test images.
    """

    name: str
    classes: tuple[str, ...]
    train: Split
    test: Split

    def __post_init__(self) -> None:
        if len(set(self.classes)) < len(self.classes):
            raise BadInput(f"{self.name} has two classes of the same name: give each class its own name")
        for part in (self.train, self.test):
            if len(part) and not 0 <= part.labels.min() <= part.labels.max() < len(self.classes):
                most = len(self.classes) - 1
                raise BadInput(f"{self.name} has labels that are not in 0..{most}: it has {most + 1} classes")

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over classes and both splits."""
        parts = [*self.classes, self.train.fingerprint, self.test.fingerprint]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def held_out(dataset: Dataset, share: float, seed: int) -> Dataset:
    """Return a data set whose test split is a part of the training images, for searches that must not see the test.

    Args:
        dataset: Data set to divide.
        share: Fraction of each class to hold out. A class of two or more images has at least one in both splits, a
            class of one image is only in the training split.
        seed: Determines the choice.
    """
    if not 0 < share < 1:
        raise BadInput(f"the share to hold out must be between 0 and 1, not {share}: choose for example 0.1")
    kept = list[npt.NDArray[np.int64]]()
    held = list[npt.NDArray[np.int64]]()
    for label, indices in enumerate(indices_by_class(dataset.train.labels, len(dataset.classes))):
        count = min(max(round(share * len(indices)), 1), len(indices) - 1) if len(indices) else 0
        order = shuffled(indices, seed, Purpose.VALIDATION_SPLIT, label)
        held.append(order[:count])
        kept.append(order[count:])
    train, test = (dataset.train.subset(np.sort(np.concatenate(part))) for part in (kept, held))
    return replace(dataset, name=f"{dataset.name}-held-out", train=train, test=test)


def first_classes(dataset: Dataset, count: int) -> Dataset:
    """Return the data set with only its first `count` classes, as the paper uses 300 of ImageNet."""
    if not 0 < count <= len(dataset.classes):
        available = len(dataset.classes)
        raise BadInput(f"{dataset.name} has {available} classes: choose 1 to {available} of them, not {count}")
    parts = (part.subset(np.flatnonzero(part.labels < count)) for part in (dataset.train, dataset.test))
    return Dataset(dataset.name, dataset.classes[:count], *parts)


def first_images(dataset: Dataset, count: int) -> Dataset:
    """Return the data set with only the first `count` training images of each class, and all test images."""
    if count < 1:
        raise BadInput(f"images_per_class must be 1 or more, not {count}")
    by_class = indices_by_class(dataset.train.labels, len(dataset.classes))
    kept = np.sort(np.concatenate([np.empty(0, np.int64), *(indices[:count] for indices in by_class)]))
    return replace(dataset, train=dataset.train.subset(kept))


def indices_by_class(labels: npt.NDArray[np.int32], classes: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the indices of each class's images in their order, class after class; they may be empty."""
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(classes + 1))
    for start, end in pairwise(bounds):
        yield order[start:end]
