"""From easy to hard: near the class mean first, more distant ones as the sleep proceeds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from siesta.contracts import Ids, Memory
from siesta.policies.embeddings import distances_to_mean
from siesta.policies.sampling import Passes, Priorities, balanced_rounds

__all__ = ["Grasp", "curriculum_passes"]

_EPSILON = 1e-7  # added to every distance, as published


class Grasp:
    """Balanced over classes, within each from easy (near its mean) to hard, then repeats in nearly the same order.

    Harun, Gallardo, Chen and Kanan, "GRASP: A Rehearsal Policy for Efficient Online Continual Learning",
    arXiv:2308.13646: the next sample of a class is drawn with a probability proportional to one over its cosine
    distance from the class mean; the largest distance in the class is then added to its distance.

    The published rule repeats a few samples (2 % of a class of 1,300) before it has drawn all of a class. Here a class
    is gone through before any sample repeats, which turns the additions of a pass into one cumulative sum.
    """

    def sample_ids(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Embed every sample once, then yield ids in balanced rounds."""
        distances = distances_to_mean(memory, rng)
        chunk_size = len(memory.ids)  # a pass depends on the one before: plan no more than are likely to be used
        yield from balanced_rounds(memory, lambda members: curriculum_passes(distances[members], rng), rng, chunk_size)


def curriculum_passes(distances: Priorities, rng: np.random.Generator) -> Passes:
    """Return the passes through a class whose samples have these distances (n,) from its mean."""
    distances = distances + _EPSILON

    def passes(count: int) -> npt.NDArray[np.int64]:
        nonlocal distances
        orders = np.empty((count, len(distances)), dtype=np.int64)
        for order in orders:
            order[:] = np.argsort(rng.standard_exponential(len(distances)) * distances)
            # the first drawn moves by the largest distance and is then the farthest: the next moves by its distance
            distances[order] = distances.max() + np.cumsum(distances[order])
            distances /= distances.max()
        return orders

    return passes
