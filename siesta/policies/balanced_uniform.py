"""The paper's default: as many samples of each class, uniformly inside it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from siesta.contracts import Ids, Memory
from siesta.policies.draws import Orders, balanced

__all__ = ["BalancedUniform"]


class BalancedUniform:
    """Draws in rounds: each round takes one sample of every class, the classes in random order.

    A class is gone through in random order before any of its samples repeats.

    Example:
        >>> classes = np.array([7, 7, 7, 9], dtype=np.int32)
        >>> memory = Memory(np.arange(4), classes, np.zeros(4, dtype=np.int32), np.zeros(0, dtype=np.int32))
        >>> picks = next(BalancedUniform().picks(memory, np.random.default_rng(0)))[:6]
        >>> (picks == 3).sum(), sorted(picks[picks != 3].tolist())
        (np.int64(3), [0, 1, 2])
    """

    def picks(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Yields many rounds at once."""

        def shuffles_of(members: npt.NDArray[np.int64]) -> Orders:
            return lambda passes: rng.permuted(np.tile(np.arange(len(members)), (passes, 1)), axis=1)

        return balanced(memory, shuffles_of, rng)
