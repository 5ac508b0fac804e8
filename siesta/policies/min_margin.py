"""The closer a sample's two best classes, the likelier it is rehearsed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from siesta.contracts import Embedded, Ids, Memory
from siesta.policies.draws import weighted
from siesta.policies.embeddings import scores

__all__ = ["MinMargin"]


class MinMargin:
    """Prefers samples that the network wavers on: probability by how close the two best classes are.

    The paper's idea: a small gap between the highest and the second highest probability is uncertainty, and the
    uncertain should be rehearsed (appendix on rehearsal policies). The priority is one minus that gap, at the start
    of the sleep.
    """

    def picks(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Embeds every sample once, then draws with replacement."""
        yield from weighted(memory.ids, scores(memory, wavering), rng)


def wavering(chunk: Embedded) -> npt.NDArray[np.floating]:
    """One minus the gap between the two highest probabilities, (B,); zero where there is one class only."""
    odds = np.exp(chunk.logits - chunk.logits.max(axis=1, keepdims=True))  # the highest is 1
    total = odds.sum(axis=1)
    odds[np.arange(len(odds)), odds.argmax(axis=1)] = 0
    gap: npt.NDArray[np.floating] = (1 - odds.max(axis=1)) / total
    return 1 - gap
