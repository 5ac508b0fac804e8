"""What was rehearsed least comes first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np

from siesta.contracts import Ids, Memory

__all__ = ["MinRehearsal"]


class MinRehearsal:
    """Takes the least rehearsed samples first, its own picks counted.

    The paper's idea: what the network has seen least often is what it forgets first (appendix on rehearsal
    policies). Among equals the order is random; once all are level this is `Uniform`.

    Example:
        >>> counts = np.array([2, 0, 1], dtype=np.int32)
        >>> memory = Memory(np.arange(3), np.zeros(3, dtype=np.int32), counts, np.zeros(0, dtype=np.int32))
        >>> picks = MinRehearsal().picks(memory, np.random.default_rng(0))
        >>> next(picks).tolist(), sorted(next(picks).tolist()), sorted(next(picks).tolist())
        ([1], [1, 2], [0, 1, 2])
    """

    def picks(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Yields, level by level, all samples that stand no higher than the level, and so lifts them above it."""
        order = np.argsort(memory.rehearsed, kind="stable")
        ids, counts = memory.ids[order], memory.rehearsed[order]
        for level in count(int(counts[0])):
            yield rng.permutation(ids[: np.searchsorted(counts, level, side="right")])
