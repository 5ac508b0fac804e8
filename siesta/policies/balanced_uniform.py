"""The paper's default: equally many samples of each class, uniformly within it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from siesta.contracts import Ids, Memory
from siesta.policies.sampling import Passes, balanced_rounds

__all__ = ["BalancedUniform"]


class BalancedUniform:
    """Draws in rounds: each round takes one sample of every class, the classes in random order.

    All samples of a class are drawn, in random order, before any of them repeats.

    Example:
        >>> classes = np.array([7, 7, 7, 9], dtype=np.int32)
        >>> memory = Memory(np.arange(4), classes, np.zeros(4, dtype=np.int32), np.zeros(0, dtype=np.int32))
        >>> sample_ids = next(BalancedUniform().sample_ids(memory, np.random.default_rng(0)))[:6]
        >>> (sample_ids == 3).sum(), sorted(sample_ids[sample_ids != 3].tolist())
        (np.int64(3), [0, 1, 2])
    """

    def sample_ids(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Yield ids in balanced rounds."""

        def shuffled_passes(members: npt.NDArray[np.int64]) -> Passes:
            return lambda count: rng.permuted(np.tile(np.arange(len(members)), (count, 1)), axis=1)

        return balanced_rounds(memory, shuffled_passes, rng)
