"""The less often a sample was rehearsed, the likelier it is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from siesta.contracts import Ids, Memory
from siesta.policies.draws import weighted

__all__ = ["MinRehearsal"]


class MinRehearsal:
    """Prefers samples that were rehearsed least: probability by 1 / (1 + times rehearsed).

    The paper's idea: what the network has seen least often is what it forgets first (appendix on rehearsal
    policies). Counts are those at the start of the sleep. Taking the least rehearsed strictly first would make a sleep
    one of new classes alone, and the old ones would be forgotten in it.

    Example:
        >>> counts = np.array([9, 0], dtype=np.int32)
        >>> memory = Memory(np.arange(2), np.zeros(2, dtype=np.int32), counts, np.zeros(0, dtype=np.int32))
        >>> picks = next(MinRehearsal().picks(memory, np.random.default_rng(0)))
        >>> round(float((picks == 1).mean()), 2)
        0.91
    """

    def picks(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Draws with replacement."""
        yield from weighted(memory.ids, 1.0 / (1.0 + memory.rehearsed.astype(np.float64)), rng)
