"""The nearer a sample to its class's mean, the likelier it is rehearsed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from siesta.contracts import Ids, Memory
from siesta.policies.draws import weighted
from siesta.policies.embeddings import closeness, distances_to_mean

__all__ = ["Prototypical"]


class Prototypical:
    """Prefers samples near the mean of their class: probability by closeness, whatever the class.

    The paper's idea: typical samples teach a class best, the farthest from its mean least (appendix on rehearsal
    policies). Distances are cosine distances between z, at the start of the sleep.
    """

    def picks(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Embeds every sample once, then draws with replacement."""
        yield from weighted(memory.ids, closeness(distances_to_mean(memory, rng)), rng)
