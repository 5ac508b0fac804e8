"""The nearer a sample is to the mean of its class, the likelier it is rehearsed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from siesta.contracts import Ids, Memory
from siesta.policies.embeddings import closeness, distances_to_mean
from siesta.policies.sampling import weighted_draws

__all__ = ["Prototypical"]


class Prototypical:
    """Prefers samples near the mean of their class: probability proportional to closeness, whatever the class.

    The paper's rule: typical samples teach a class best, those far from its mean least (appendix on rehearsal
    policies). Distances are cosine distances between z at the start of the sleep.
    """

    def sample_ids(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Embed every sample once, then draw with replacement."""
        yield from weighted_draws(memory.ids, closeness(distances_to_mean(memory, rng)), rng)
