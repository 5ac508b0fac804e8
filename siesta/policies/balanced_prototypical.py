"""As many samples of each class, inside it the typical ones first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from siesta.contracts import Ids, Memory
from siesta.policies.draws import balanced, weighted_orders
from siesta.policies.embeddings import closeness, distances_to_mean

__all__ = ["BalancedPrototypical"]


class BalancedPrototypical:
    """Balanced over classes, and in each likely those near its mean first.

    The paper's idea: equally many of every class, chosen as `Prototypical` does (appendix on rehearsal policies). Each
    pass through a class is drawn anew and without replacement: what is left over when the sleep ends is likely to be
    what is far from the mean.
    """

    def picks(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Embeds every sample once, then yields many rounds at once."""
        priorities = closeness(distances_to_mean(memory, rng))
        yield from balanced(memory, lambda members: weighted_orders(priorities[members], rng), rng)
