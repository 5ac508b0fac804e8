"""The statistics of the head, computed again from stored samples after a change of the top or the codec."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.contracts import Codes, Ids
from siesta.head import FeatureStatistics
from siesta.head.kinds import DISCRIMINANT, head_of
from siesta.pipeline import Pipeline
from siesta.rng import Purpose, generator
from siesta.store import Store

__all__ = ["CountedStatistics", "counted_anew", "samples_to_count"]

_BATCH_SIZE = 64
_MOST_SAMPLES = 20_000  # in new statistics, unless that leaves a class fewer than _FEWEST
_FEWEST = 20  # samples of a class in new statistics, if it has as many


class CountedStatistics:
    """Statistics of features, and the ids of the samples that are counted in them.

    Attributes:
        statistics: Sums over these samples.
    """

    def __init__(self, features: int) -> None:
        """Start without samples; `features` is the length of z."""
        self.statistics = FeatureStatistics.empty(features)
        self._ids: list[Ids] = [np.zeros(0, np.int64)]

    def add(self, ids: Ids, classes: npt.NDArray[np.integer[Any]], features: npt.NDArray[np.float32]) -> None:
        """Count samples: their ids (B,), class ids (B,) and z (B, D)."""
        self.statistics.add(classes, features)
        self._ids.append(ids)

    def stored(self) -> tuple[Mapping[str, npt.NDArray[Any]], Ids]:
        """Return the statistics as they are stored, and the ids of the samples that they count."""
        return self.statistics.arrays(), np.concatenate(self._ids)

    @classmethod
    def of(cls, statistics: FeatureStatistics, ids: Ids) -> CountedStatistics:
        """Return statistics that were computed elsewhere, of the samples `ids`."""
        counted = cls(len(statistics.gram))
        counted.statistics = statistics
        counted._ids.append(ids)
        return counted

    @classmethod
    def of_stored(
        cls,
        store: Store,
        features: Callable[[Codes], npt.NDArray[np.float32]],
        width: int,
        newest: int,
        seconds: float | None = None,
    ) -> CountedStatistics:
        """Return the statistics of stored samples that are not held out; see `samples_to_count`.

        Args:
            store: The store.
            features: Function from codes (B, code_bytes) to z (B, D).
            width: Length of z.
            newest: Id of the newest sample to count.
            seconds: Time after which to stop; all classes then have about the same number of counted samples.
        """
        counted = cls(width)
        ids, classes = samples_to_count(store, newest)
        start = time.monotonic()
        for first in range(0, len(ids), _BATCH_SIZE):
            if seconds is not None and first and time.monotonic() - start > seconds:
                break
            batch = slice(first, first + _BATCH_SIZE)
            present, codes = store.samples.get(ids[batch])
            if len(codes):
                counted.add(ids[batch][present], classes[batch][present], features(codes))
        return counted


def counted_anew(
    store: Store, pipeline: Pipeline, newest: int, seconds: float | None = None
) -> CountedStatistics | None:
    """Return the statistics of a learner's head under the pipeline's top; None for a learner with a cosine head.

    Args:
        store: The store of the learner.
        pipeline: The pipeline that computes z from codes.
        newest: Id of the newest sample to count.
        seconds: Time after which to stop.
    """
    if head_of(store.settings) != DISCRIMINANT:
        return None
    return CountedStatistics.of_stored(store, pipeline.features, pipeline.spec.features, newest, seconds)


def samples_to_count(store: Store, newest: int) -> tuple[Ids, npt.NDArray[np.int32]]:
    """Return ids (N,) and class ids (N,) of the samples up to `newest` that are counted in new statistics.

    These are all samples that are not held out. If there are more than 20,000, they are a random part of each class, of
    at least 20 samples. The samples of the classes alternate, so that any prefix has about equally many of each class.
    """
    memory = store.samples.memory(newest)
    rng = generator(store.settings["seed"], Purpose.STATISTICS, newest)
    shuffled = rng.permutation(len(memory.ids))
    order = shuffled[np.argsort(memory.classes[shuffled], kind="stable")]
    classes = memory.classes[order]
    firsts = np.searchsorted(classes, classes)  # where each sample's class begins
    rank = np.arange(len(order)) - firsts
    most = max(_FEWEST, _MOST_SAMPLES // max(len(np.unique(classes)), 1))
    kept = np.flatnonzero(rank < most)
    order = order[kept[np.argsort(rank[kept], kind="stable")]]
    return memory.ids[order], memory.classes[order]
