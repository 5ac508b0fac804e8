"""The less often a sample was rehearsed, the likelier it is rehearsed now."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from siesta.contracts import Ids, Memory
from siesta.policies.sampling import weighted_draws

__all__ = ["MinRehearsal"]


class MinRehearsal:
    """Prefers samples that were rehearsed least: probability proportional to 1 / (1 + times rehearsed).

    The paper's rule: the network forgets first what it has seen least often (appendix on rehearsal policies). Counts
    are those at the start of the sleep. Strictly taking the least rehearsed first would fill a sleep with new classes
    alone, and the old ones would be forgotten.

    Example:
        >>> counts = np.array([9, 0], dtype=np.int32)
        >>> memory = Memory(np.arange(2), np.zeros(2, dtype=np.int32), counts, np.zeros(0, dtype=np.int32))
        >>> sample_ids = next(MinRehearsal().sample_ids(memory, np.random.default_rng(0)))
        >>> round(float((sample_ids == 1).mean()), 2)
        0.91
    """

    def sample_ids(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Draw with replacement."""
        yield from weighted_draws(memory.ids, 1.0 / (1.0 + memory.rehearsed.astype(np.float64)), rng)
