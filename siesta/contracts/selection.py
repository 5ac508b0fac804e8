"""Choice of the samples of a class that stay in memory."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Selection"]


class Selection(Protocol):
    """Chooses which samples of a class stay in memory; a plain function is enough.

    A store evicts the last of its largest class first, once `Store.rank` has told it the order of all samples. A method
    with a budget of exemplars for each class takes so many of the first.
    """

    def __call__(
        self, features: npt.NDArray[np.floating], count: int, rng: np.random.Generator, /
    ) -> npt.NDArray[np.int64]:
        """Return the samples to keep, the most important first.

        Args:
            features: One row for each sample of a class, usually z of length one, (N, D).
            count: How many to keep, 0 to N.
            rng: The only source of randomness.

        Returns:
            Distinct row numbers, (count,).
        """
