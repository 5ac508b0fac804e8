"""Random selection."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["random"]


def random(features: npt.NDArray[np.floating], count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Any sample is as likely as any other.

    Example:
        >>> random(np.zeros((3, 8)), 3, np.random.default_rng(0)).tolist()
        [2, 0, 1]
    """
    return rng.permutation(len(features))[:count]
