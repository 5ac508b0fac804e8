"""What was taught while somebody slept, seen with the top that woke up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from siesta.contracts import Codes
from siesta.head import Head

__all__ = ["CatchUp"]


class CatchUp:
    """Sums of z by class over samples that a head does not know yet."""

    def __init__(self, features: Callable[[Codes], npt.NDArray[np.float32]], head: Head) -> None:
        """Takes the way from codes to z, and the head as the sleep left it."""
        self._features, self._head = features, head
        self._sums: dict[int, tuple[int, npt.NDArray[np.float64]]] = {}

    def take(self, classes: npt.NDArray[np.int32], codes: Codes) -> None:
        """Counts samples in: their class ids (B,) and codes (B, code_bytes)."""
        for class_id, feature in zip(classes.tolist(), self._features(codes), strict=True):
            count, total = self._sums.get(class_id, (0, np.zeros(len(feature))))
            self._sums[class_id] = count + 1, total + feature

    def totals(self, taught: Mapping[int, int]) -> Iterator[tuple[int, int, npt.NDArray[np.float64]]]:
        """Class id, count and sum (D,) of every class of which more was taught than the head knows.

        What was taught and evicted before it could be seen is taken to be as the rest of its class: it counts, and
        moves nothing.
        """
        for class_id, count_of_all in taught.items():
            count, total = self._sums.get(class_id, (0, 0.0))
            known, vector = self._head.known(class_id)
            evicted = count_of_all - known - count
            if known + count and (count or evicted > 0):
                missing = max(evicted, 0)
                mean = (known * vector + total) / (known + count)
                yield class_id, count + missing, total + missing * mean
