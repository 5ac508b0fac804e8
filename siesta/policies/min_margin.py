"""The smaller the margin between a sample's two best classes, the likelier it is rehearsed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from siesta.contracts import Embedded, Ids, Memory
from siesta.policies.embeddings import score_samples
from siesta.policies.sampling import weighted_draws

__all__ = ["MinMargin", "uncertainty"]


class MinMargin:
    """Prefers uncertain samples: probability proportional to 1 - margin between the two best classes.

    The paper's rule: a small margin between the highest and the second highest probability means uncertainty, and
    uncertain samples should be rehearsed (appendix on rehearsal policies). The priority is one minus that margin at
    the start of the sleep.
    """

    def sample_ids(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Embed every sample once, then draw with replacement."""
        yield from weighted_draws(memory.ids, score_samples(memory, uncertainty), rng)


def uncertainty(chunk: Embedded) -> npt.NDArray[np.floating]:
    """Return one minus the margin between the two highest probabilities, (B,); zero if there is only one class."""
    odds = np.exp(chunk.logits - chunk.logits.max(axis=1, keepdims=True))  # the highest is 1
    total = odds.sum(axis=1)
    odds[np.arange(len(odds)), odds.argmax(axis=1)] = 0
    margin: npt.NDArray[np.floating] = (1 - odds.max(axis=1)) / total
    return 1 - margin
