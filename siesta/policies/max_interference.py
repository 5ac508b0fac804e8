"""The more alike a sample and one of another class, the likelier it is rehearsed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from siesta.contracts import Embedded, Ids, Memory
from siesta.policies.draws import Priorities, weighted
from siesta.policies.embeddings import closeness, scatter, unit

__all__ = ["MaxInterference"]

_EXACT = 20_000  # samples up to which every pair is compared: 100 MB of 1280 floats each
_REFERENCE = 4_096  # random samples that the others are compared with beyond that
_ROWS_AT_ONCE = 512


class MaxInterference:
    """Prefers samples that look like one of another class: probability by closeness to the nearest such.

    The paper's idea: samples on either side of a class boundary disturb each other, and so may teach most (appendix
    on rehearsal policies). Closeness is the cosine between z, at the start of the sleep. Up to 20,000 samples it is
    exact; beyond that the nearest is looked for among 4,096 random samples.
    """

    def picks(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Embeds every sample once, the random ones twice, then draws with replacement."""
        yield from weighted(memory.ids, closeness(_distances_to_others(memory, rng)), rng)


def _distances_to_others(memory: Memory, rng: np.random.Generator) -> Priorities:
    """Cosine distance (N,) to the nearest sample of another class; 2, the largest, where there is none."""
    exact = len(memory.ids) <= _EXACT
    some = memory.ids if exact else rng.choice(memory.ids, _REFERENCE, replace=False)
    held = [(chunk.ids, unit(chunk.features), chunk.rows) for chunk in memory.embed(np.sort(some))]
    if not held:
        return np.full(len(memory.ids), 2.0)
    ids, units, rows = (np.concatenate(column) for column in zip(*held, strict=True))

    def nearest(own: npt.NDArray[np.float32], own_rows: npt.NDArray[np.int64]) -> npt.NDArray[np.floating]:
        cosines = own @ units.T  # (B, reference)
        cosines[own_rows[:, None] == rows] = -1
        distances: npt.NDArray[np.floating] = 1 - cosines.max(axis=1)
        return distances.clip(min=0)

    def among_themselves() -> Iterator[tuple[Ids, npt.NDArray[np.floating]]]:
        for start in range(0, len(ids), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            yield ids[part], nearest(units[part], rows[part])

    def passing(chunks: Iterator[Embedded]) -> Iterator[tuple[Ids, npt.NDArray[np.floating]]]:
        return ((chunk.ids, nearest(unit(chunk.features), chunk.rows)) for chunk in chunks)

    found = among_themselves() if exact else passing(memory.embed(np.sort(memory.ids)))
    return scatter(memory, found, gone=2.0)
