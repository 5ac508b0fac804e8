"""The higher a sample's loss, the likelier it is rehearsed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from siesta.contracts import Embedded, Ids, Memory
from siesta.policies.draws import weighted
from siesta.policies.embeddings import scores

__all__ = ["MaxLoss"]


class MaxLoss:
    """Prefers samples that the network gets wrong: probability by cross-entropy.

    The paper's idea: where the network is least sure there is most to gain (appendix on rehearsal policies). Losses
    are those at the start of the sleep.
    """

    def picks(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Embeds every sample once, then draws with replacement."""
        yield from weighted(memory.ids, scores(memory, cross_entropy), rng)


def cross_entropy(chunk: Embedded) -> npt.NDArray[np.floating]:
    """Minus the log of the own class's probability, (B,)."""
    highest = chunk.logits.max(axis=1)
    own = chunk.logits[np.arange(len(chunk.rows)), chunk.rows]
    losses: npt.NDArray[np.floating] = np.log(np.exp(chunk.logits - highest[:, None]).sum(axis=1)) + highest - own
    return losses.clip(min=0)
