"""Class sums of the samples that were taught during a sleep, under the new top."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.contracts import Codes, Ids
from siesta.head import Head
from siesta.sleep.counted_statistics import CountedStatistics

__all__ = ["DeltaSums"]


class DeltaSums:
    """Sums of z by class, over the samples that a head does not know yet."""

    def __init__(
        self,
        features: Callable[[Codes], npt.NDArray[np.float32]],
        head: Head,
        statistics: CountedStatistics | None = None,
    ) -> None:
        """Start without samples.

        Args:
            features: Function from codes (B, code_bytes) to z (B, D) under the new top.
            head: The head at the end of the sleep.
            statistics: Statistics of the samples that the head knows, to which `add` adds; None for a learner whose
                head has no statistics.
        """
        self._features = features
        self._head = head
        self._statistics = statistics
        self._sums: dict[int, tuple[int, npt.NDArray[np.float64]]] = {}

    def add(self, ids: Ids, classes: npt.NDArray[np.int32], codes: Codes, held: npt.NDArray[np.bool_]) -> None:
        """Add samples: their ids (B,), class ids (B,), codes (B, code_bytes), and whether they are held out (B,)."""
        features = self._features(codes)
        for class_id, feature in zip(classes.tolist(), features, strict=True):
            count, total = self._sums.get(class_id, (0, np.zeros(len(feature))))
            self._sums[class_id] = count + 1, total + feature
        if self._statistics is not None:
            self._statistics.add(ids[~held], classes[~held], features[~held])

    def statistics(self) -> tuple[Mapping[str, npt.NDArray[Any]], Ids] | None:
        """Return the statistics of the head as they are stored, and the ids of the samples counted in them."""
        return None if self._statistics is None else self._statistics.stored()

    def totals(self, taught: Mapping[int, int]) -> Iterator[tuple[int, int, npt.NDArray[np.float64]]]:
        """Yield class id, count and sum (D,) of every class with more samples than the head knows.

        Samples that were evicted before `add` could see them are counted as the mean of their class, so that they
        do not move it.

        Args:
            taught: Number of samples ever taught, by class id.
        """
        for class_id, taught_count in taught.items():
            count, total = self._sums.get(class_id, (0, 0.0))
            known, vector = self._head.at_last_sleep(class_id)
            evicted = max(taught_count - known - count, 0)
            if known + count and (count or evicted):
                mean = (known * vector + total) / (known + count)
                yield class_id, count + evicted, total + evicted * mean
