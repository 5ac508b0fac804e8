"""The more similar a sample is to one of another class, the likelier it is rehearsed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from siesta.contracts import Ids, Memory
from siesta.policies.embeddings import closeness, in_memory_order, normalized
from siesta.policies.sampling import Priorities, weighted_draws

__all__ = ["MaxInterference", "distances_to_other_classes"]

_EXACT_LIMIT = 20_000  # samples up to which all pairs are compared: 100 MB of 1280 floats each
_REFERENCES = 4_096
_ROWS_PER_PRODUCT = 512


class MaxInterference:
    """Prefers confusable samples: probability proportional to closeness to the nearest sample of another class.

    The paper's rule: samples on either side of a class boundary interfere, and so may teach most (appendix on
    rehearsal policies). Closeness is the cosine between z at the start of the sleep. It is exact up to 20,000 samples;
    beyond that the nearest sample is searched among 4,096 random ones.
    """

    def sample_ids(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Embed every sample once, random references twice, then draw with replacement."""
        yield from weighted_draws(memory.ids, closeness(distances_to_other_classes(memory, rng)), rng)


def distances_to_other_classes(
    memory: Memory, rng: np.random.Generator, exact_limit: int = _EXACT_LIMIT, references: int = _REFERENCES
) -> Priorities:
    """Return the cosine distance (N,) to the nearest sample of another class; 2, the maximum, if there is none.

    Args:
        memory: The stored samples.
        rng: Chooses the references.
        exact_limit: Number of samples up to which all pairs are compared.
        references: Number of random samples that the others are compared with beyond that.
    """
    exact = len(memory.ids) <= exact_limit
    reference_ids = memory.ids if exact else rng.choice(memory.ids, references, replace=False)
    chunks = [(chunk.ids, normalized(chunk.features), chunk.rows) for chunk in memory.embed(np.sort(reference_ids))]
    if not chunks:
        return np.full(len(memory.ids), 2.0)
    ids, units, rows = (np.concatenate(column) for column in zip(*chunks, strict=True))

    def nearest(own_units: npt.NDArray[np.float32], own_rows: npt.NDArray[np.int64]) -> npt.NDArray[np.floating]:
        cosines = own_units @ units.T  # (B, references)
        cosines[own_rows[:, None] == rows] = -1
        distances: npt.NDArray[np.floating] = 1 - cosines.max(axis=1)
        return distances.clip(min=0)

    def among_references() -> Iterator[tuple[Ids, npt.NDArray[np.floating]]]:
        for start in range(0, len(ids), _ROWS_PER_PRODUCT):
            part = slice(start, start + _ROWS_PER_PRODUCT)
            yield ids[part], nearest(units[part], rows[part])

    def in_second_pass() -> Iterator[tuple[Ids, npt.NDArray[np.floating]]]:
        for chunk in memory.embed(np.sort(memory.ids)):
            yield chunk.ids, nearest(normalized(chunk.features), chunk.rows)

    return in_memory_order(memory, among_references() if exact else in_second_pass(), missing=2.0)
