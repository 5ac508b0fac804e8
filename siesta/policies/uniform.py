"""All stored samples equally likely, whatever their class."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from siesta.contracts import Ids, Memory

__all__ = ["Uniform"]


class Uniform:
    """Goes through the whole memory in random order, then again in another.

    Example:
        >>> memory = Memory(np.arange(4), *[np.zeros(4, dtype=np.int32)] * 2, np.zeros(0, dtype=np.int32))
        >>> sorted(next(Uniform().sample_ids(memory, np.random.default_rng(0))).tolist())
        [0, 1, 2, 3]
    """

    def sample_ids(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Yield one random permutation of all ids after another."""
        while True:
            yield rng.permutation(memory.ids)
