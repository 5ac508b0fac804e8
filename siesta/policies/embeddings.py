"""Numbers that policies compute from embeddings, one a sample, while the chunks of embeddings stream past."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from siesta.contracts import Embedded, Ids, Memory
from siesta.policies.sampling import Priorities

__all__ = ["closeness", "distances_to_mean", "in_memory_order", "normalized", "score_samples"]

_SAMPLES_IN_RAM = 16_384  # 84 MB of 1280 floats each
_FLOOR = 0.1  # share of the mean distance that is added to each, see `closeness`

Floats = npt.NDArray[np.float32]


def score_samples(memory: Memory, score: Callable[[Embedded], npt.NDArray[np.floating]]) -> Priorities:
    """Return a score for each sample of the memory, (N,), in one pass; samples removed meanwhile get zero.

    Args:
        memory: The stored samples.
        score: A chunk of B samples -> their scores (B,).
    """
    scored = ((chunk.ids, score(chunk)) for chunk in memory.embed(np.sort(memory.ids)))
    return in_memory_order(memory, scored, missing=0.0)


def in_memory_order(
    memory: Memory, chunks: Iterator[tuple[Ids, npt.NDArray[np.floating]]], missing: float
) -> Priorities:
    """Return the values of all samples, (N,), from chunks of ids and values; `missing` where there is none."""
    order = np.argsort(memory.ids)
    values = np.full(len(order), missing)
    for ids, numbers in chunks:
        values[order[np.searchsorted(memory.ids, ids, sorter=order)]] = numbers
    return values


def normalized(features: Floats) -> Floats:
    """Return rows (B, D) of length one; a row of zeros is not changed."""
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    unit: Floats = features / np.maximum(lengths, 1e-12).astype(np.float32)
    return unit


def closeness(distances: Priorities) -> Priorities:
    """Return priorities for distances (N,): 1 / (distance + a tenth of the mean distance).

    The only sample of a class is its mean and has a distance of zero; the second term bounds its priority.
    """
    floor = _FLOOR * distances.mean()
    return 1 / (distances + floor) if floor > 0 else np.ones_like(distances)


def distances_to_mean(memory: Memory, rng: np.random.Generator, samples_in_ram: int = _SAMPLES_IN_RAM) -> Priorities:
    """Return the cosine distance (N,) between each sample's z and the mean z of its class, in one pass.

    Samples that are removed meanwhile get the largest distance.

    Args:
        memory: The stored samples.
        rng: Splits large classes.
        samples_in_ram: A class with more samples is split into random parts of this size, each with its own mean.
    """
    shuffled = rng.permutation(len(memory.ids))
    by_class = shuffled[np.argsort(memory.classes[shuffled], kind="stable")]
    parts = _class_by_class(memory.embed(memory.ids[by_class]), samples_in_ram)
    chunks = (
        (ids, 1 - normalized(features) @ normalized(features.mean(axis=0, keepdims=True))[0]) for ids, features in parts
    )
    distances = np.maximum(in_memory_order(memory, chunks, missing=np.nan), 0)
    return np.nan_to_num(distances, nan=np.nanmax(distances, initial=0.0))


def _class_by_class(chunks: Iterator[Embedded], limit: int) -> Iterator[tuple[Ids, Floats]]:
    """Yield ids (n,) and z (n, D) of one class after another, from chunks that are sorted by class."""
    ids: list[Ids] = []
    features: list[Floats] = []
    row = -1
    for chunk in chunks:
        boundaries = np.flatnonzero(np.diff(chunk.rows)) + 1
        for part in np.split(np.arange(len(chunk.ids)), boundaries):
            if ids and (chunk.rows[part[0]] != row or sum(map(len, ids)) >= limit):
                yield np.concatenate(ids), np.concatenate(features)
                ids, features = [], []
            row = int(chunk.rows[part[0]])
            ids.append(chunk.ids[part])
            features.append(chunk.features[part])
    if ids:
        yield np.concatenate(ids), np.concatenate(features)
