"""Choice of the stored samples that a sleep rehearses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from siesta.contracts.arrays import Ids

__all__ = ["Embed", "Embedded", "Memory", "Policy"]


@dataclass(frozen=True)
class Embedded:
    """Stored samples as the current top and head see them.

    Attributes:
        ids: Sample ids, (B,).
        features: z, (B, D).
        logits: Cosine over temperature for each row of the head, (B, K).
        rows: The head's row of each sample's own class, (B,).
    """

    ids: Ids
    features: npt.NDArray[np.float32]
    logits: npt.NDArray[np.float32]
    rows: npt.NDArray[np.int64]


Embed = Callable[[Ids], Iterator[Embedded]]
"""Maps ids (N,) to non-empty chunks in the same order; samples that are no longer stored are skipped."""


def _no_embeddings(_ids: Ids) -> Iterator[Embedded]:
    raise ValueError("this memory has no embeddings: create it with `embed`")


@dataclass(frozen=True)
class Memory:
    """The view of the stored samples that a policy gets, one row per sample in no particular order.

    Attributes:
        ids: Sample ids, (N,).
        classes: Class id of each sample, (N,).
        rehearsed: How often each sample has been rehearsed, (N,).
        new_classes: Ids of the classes that were first learned since the last sleep.
        embed: Passes samples through the network, one forward pass each. A million embeddings do not fit in RAM:
            reduce each chunk to a few numbers before taking the next.
    """

    ids: Ids
    classes: npt.NDArray[np.int32]
    rehearsed: npt.NDArray[np.int32]
    new_classes: npt.NDArray[np.int32]
    embed: Embed = _no_embeddings


@runtime_checkable
class Policy(Protocol):
    """Chooses which stored samples a sleep rehearses.

    `sample_ids` is an endless iterator, of which the sleep loop takes what its budget allows. It is deterministic given
    `rng` and the stored samples.
    """

    def sample_ids(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Yield chunks of sample ids, of any length, in rehearsal order.

        Args:
            memory: The stored samples.
            rng: The only source of randomness.
        """
