"""From easy to hard: near the class mean first, farther out the longer the sleep."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from siesta.contracts import Ids, Memory
from siesta.policies.draws import Orders, Priorities, balanced
from siesta.policies.embeddings import distances_to_mean

__all__ = ["Grasp", "curriculum"]

_NEAREST = 1e-7  # added to every distance, as published


class Grasp:
    """Balanced over classes, in each from easy (near its mean) to hard, and over again in much the same order.

    Harun, Gallardo, Chen and Kanan, "GRASP: A Rehearsal Policy for Efficient Online Continual Learning",
    arXiv:2308.13646: a class's next sample is drawn with a probability of one over its cosine distance from the class
    mean, and the one drawn is then moved away by the largest distance in its class.

    Theirs repeats a few samples (2 % of a class of 1,300) before it has drawn all of a class. Ours goes through a
    class before any repeats, which makes the moves of a whole pass one cumulative sum.
    """

    def picks(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Embeds every sample once, then yields many rounds at once."""
        distances = distances_to_mean(memory, rng)
        once_through = len(memory.ids)  # a pass needs the one before it: plan no more than are likely to be used
        yield from balanced(memory, lambda members: curriculum(distances[members], rng), rng, once_through)


def curriculum(distances: Priorities, rng: np.random.Generator) -> Orders:
    """Passes through a class with these distances (n,) from its mean."""
    distances = distances + _NEAREST

    def orders(passes: int) -> npt.NDArray[np.int64]:
        nonlocal distances
        found = np.empty((passes, len(distances)), dtype=np.int64)
        for row in found:
            row[:] = np.argsort(rng.standard_exponential(len(distances)) * distances)
            # the first drawn moves by the largest distance, and is then the farthest: the next moves by its distance
            distances[row] = distances.max() + np.cumsum(distances[row])
            distances /= distances.max()
        return found

    return orders
