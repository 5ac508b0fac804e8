"""A policy, a selection and an augmentation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from siesta.contracts import Ids, Memory

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["NewerHalf", "half_and_half", "largest_z"]


class NewerHalf:
    """Draw uniformly from the newer half of the samples."""

    def sample_ids(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Yield 64 sample ids at a time."""
        newer = np.sort(memory.ids)[len(memory.ids) // 2 :]
        while True:
            yield rng.choice(newer, 64)


def largest_z(features: npt.NDArray[np.floating], count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Keep the samples with the largest elements of z; which of equal ones is random."""
    order = rng.permutation(len(features))
    return order[np.argsort(-features.max(axis=1, initial=0)[order], kind="stable")][:count]


def half_and_half(first: Tensor, second: Tensor, rng: np.random.Generator) -> tuple[Tensor, float]:
    """Average two batches with a share between 0.4 and 0.6."""
    share = float(rng.uniform(0.4, 0.6))
    return share * first + (1 - share) * second, share
