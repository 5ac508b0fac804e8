"""What policies read off embeddings: one number a sample, kept while the chunks that it came from pass by."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from siesta.contracts import Embedded, Ids, Memory
from siesta.policies.draws import Priorities

__all__ = ["closeness", "distances_to_mean", "scatter", "scores", "unit"]

_HELD = 16_384  # samples whose z are in RAM at once: 84 MB of 1280 floats each
_FLOOR = 0.1  # share of the mean distance that is added to each, see `closeness`

Floats = npt.NDArray[np.float32]


def scores(memory: Memory, score: Callable[[Embedded], npt.NDArray[np.floating]]) -> Priorities:
    """A number for each sample of the memory, (N,), from one pass; zero for samples that are gone meanwhile.

    Args:
        memory: What is stored.
        score: A chunk of B samples -> their numbers (B,).
    """
    return scatter(memory, ((chunk.ids, score(chunk)) for chunk in memory.embed(np.sort(memory.ids))), gone=0.0)


def scatter(memory: Memory, found: Iterator[tuple[Ids, npt.NDArray[np.floating]]], gone: float) -> Priorities:
    """Brings numbers that were found for ids, chunk by chunk, into the order of the memory, (N,)."""
    order = np.argsort(memory.ids)
    values = np.full(len(order), gone)
    for ids, numbers in found:
        values[order[np.searchsorted(memory.ids, ids, sorter=order)]] = numbers
    return values


def unit(features: Floats) -> Floats:
    """Rows (B, D) brought to length one; a row of zeros stays."""
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    units: Floats = features / np.maximum(lengths, 1e-12).astype(np.float32)
    return units


def closeness(distances: Priorities) -> Priorities:
    """Priorities for distances (N,): the nearer, the higher.

    One over the distance and a tenth of the mean distance: a sample that is its class's mean, being the only one,
    has a distance of zero, and should come more often than others but not for ever.
    """
    floor = _FLOOR * distances.mean()
    return 1 / (distances + floor) if floor > 0 else np.ones_like(distances)


def distances_to_mean(memory: Memory, rng: np.random.Generator) -> Priorities:
    """Cosine distance (N,) between each sample's z and the mean z of its class; one pass, one class in RAM.

    A class of more than 16,384 samples is taken in random parts of that size, each with its own mean. Samples that
    are gone meanwhile count as the farthest.
    """
    shuffled = rng.permutation(len(memory.ids))
    by_class = shuffled[np.argsort(memory.classes[shuffled], kind="stable")]
    parts = _class_by_class(memory.embed(memory.ids[by_class]))
    found = ((ids, 1 - unit(features) @ unit(features.mean(axis=0, keepdims=True))[0]) for ids, features in parts)
    distances = np.maximum(scatter(memory, found, gone=np.nan), 0)
    return np.nan_to_num(distances, nan=np.nanmax(distances, initial=0.0))


def _class_by_class(chunks: Iterator[Embedded]) -> Iterator[tuple[Ids, Floats]]:
    """Ids (n,) and z (n, D) of one class after another, from chunks whose samples are sorted by class."""
    ids: list[Ids] = []
    features: list[Floats] = []
    row = -1
    for chunk in chunks:
        cuts = np.flatnonzero(np.diff(chunk.rows)) + 1
        for part in np.split(np.arange(len(chunk.ids)), cuts):
            if ids and (chunk.rows[part[0]] != row or sum(map(len, ids)) >= _HELD):
                yield np.concatenate(ids), np.concatenate(features)
                ids, features = [], []
            row = int(chunk.rows[part[0]])
            ids.append(chunk.ids[part])
            features.append(chunk.features[part])
    if ids:
        yield np.concatenate(ids), np.concatenate(features)
