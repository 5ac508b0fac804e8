"""Equally many samples of each class, samples near the class mean first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from siesta.contracts import Ids, Memory
from siesta.policies.embeddings import closeness, distances_to_mean
from siesta.policies.sampling import balanced_rounds, weighted_passes

__all__ = ["BalancedPrototypical"]


class BalancedPrototypical:
    """Balanced over classes; within a class, samples near its mean tend to come first.

    The paper's rule: equally many samples of each class, chosen as `Prototypical` does (appendix on rehearsal
    policies). Each pass through a class is drawn anew and without replacement, so the samples that a sleep does not
    reach are likely to be far from the mean.
    """

    def sample_ids(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Embed every sample once, then yield ids in balanced rounds."""
        priorities = closeness(distances_to_mean(memory, rng))
        yield from balanced_rounds(memory, lambda members: weighted_passes(priorities[members], rng), rng)
