"""The higher the loss of a sample, the likelier it is rehearsed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from siesta.contracts import Embedded, Ids, Memory
from siesta.policies.embeddings import score_samples
from siesta.policies.sampling import weighted_draws

__all__ = ["MaxLoss", "cross_entropy"]


class MaxLoss:
    """Prefers samples that the network gets wrong: probability proportional to cross-entropy.

    The paper's rule: there is most to gain where the loss is highest (appendix on rehearsal policies). Losses are
    those at the start of the sleep.
    """

    def sample_ids(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Embed every sample once, then draw with replacement."""
        yield from weighted_draws(memory.ids, score_samples(memory, cross_entropy), rng)


def cross_entropy(chunk: Embedded) -> npt.NDArray[np.floating]:
    """Return minus the log of the true class's probability, (B,)."""
    highest = chunk.logits.max(axis=1)
    true_logits = chunk.logits[np.arange(len(chunk.rows)), chunk.rows]
    log_sums = np.log(np.exp(chunk.logits - highest[:, None]).sum(axis=1)) + highest
    losses: npt.NDArray[np.floating] = log_sums - true_logits
    return losses.clip(min=0)
