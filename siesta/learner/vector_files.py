"""Labelled inputs on disk for any learner: folders of images, or files of vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput
from siesta.learner import Siesta
from siesta.learner.folders import image_sources
from siesta.learner.sources import LabelledSource
from siesta.pipeline import InputLike
from siesta.store import clean_label
from siesta.vectors import read_labels, read_vectors, row_keys

__all__ = ["labelled_sources", "unlabelled_inputs", "vectors_for"]


def labelled_sources(learner: Siesta, path: Path, labels: Path | None) -> list[LabelledSource]:
    """Return what to learn or to evaluate on.

    Args:
        learner: A learner of images or of vectors.
        path: A folder of images, `path/<label>/*`, or a file of vectors.
        labels: A file with the labels of vectors, if they are not in `path`.
    """
    if learner.settings.get("features") is not None:
        return list(_vector_sources(path, vectors_for(learner, path), labels))
    if labels is not None:
        raise BadInput(f"labels are {labels}, and those of images are the names of their folders: leave --labels out")
    return image_sources(path)


def vectors_for(learner: Siesta, path: Path) -> npt.NDArray[Any]:
    """Return the vectors (N, d) of a file; raise `BadInput` unless they have the length that a learner takes."""
    if path.is_dir():
        raise BadInput(f"{path} is a folder, and this learner takes vectors: give a .npy or .npz file of them")
    vectors, features = read_vectors(path), learner.settings["features"]
    if vectors.shape[1] != features:
        raise BadInput(
            f"{path} holds vectors of {vectors.shape[1]} numbers, and this learner takes {features}: give others, or "
            f"create a learner with --features {vectors.shape[1]}"
        )
    return vectors


def unlabelled_inputs(learner: Siesta, paths: Iterable[Path]) -> Iterator[tuple[Path, InputLike]]:
    """Yield what is in some files, as `Siesta.read` takes it, each with where it is: images, or rows of vectors."""
    takes_vectors = learner.settings.get("features") is not None
    for path in paths:
        if takes_vectors:
            yield from ((_row_name(path, row), vector) for row, vector in enumerate(vectors_for(learner, path)))
        else:
            yield path, path


def _row_name(path: Path, row: int) -> Path:
    """Return what messages call a row of a file of vectors."""
    return path.with_name(f"{path.name}[{row}]")


def _vector_sources(path: Path, vectors: npt.NDArray[Any], labels: Path | None) -> Iterator[LabelledSource]:
    texts = read_labels(path, labels, len(vectors))
    for label in set(texts):
        clean_label(label)
    for row, (label, key) in enumerate(zip(texts, row_keys(vectors, texts), strict=True)):
        yield LabelledSource(_row_name(path, row), label, np.asarray(vectors[row]), partial(int, key))
