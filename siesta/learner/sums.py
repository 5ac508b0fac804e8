"""Comparison of sums with those that the stored samples give: class sums since the last sleep, and the head's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from siesta.contracts import Ids
from siesta.head import FeatureStatistics
from siesta.learner.state import stored_statistics
from siesta.pipeline import Pipeline
from siesta.rng import Purpose, generator
from siesta.store import RecentSum, Snapshot, Store
from siesta.store.check import Finding

__all__ = ["wrong_statistics", "wrong_sums"]

_TOLERANCE = 0.01  # of the sum of the norms; the same network on another device differs by less
_BATCH_SIZE = 64
_SAMPLES = 256  # to embed, unless all classes are compared


def wrong_sums(store: Store, snapshot: Snapshot, *, full: bool) -> Iterator[Finding]:
    """Yield a finding for each class whose sum differs from that of its stored samples.

    A class of which samples were evicted since the last sleep cannot be compared.

    Args:
        store: An open store.
        snapshot: Its rows and weights.
        full: Compare all classes, not only classes drawn at random with a few hundred samples.
    """
    ids, classes = _samples_since(store, snapshot)
    stored = dict(zip(*(values.tolist() for values in np.unique(classes, return_counts=True)), strict=True))
    counts = {recent.class_id: recent.count for recent in snapshot.recent}
    for record in snapshot.classes:
        since, counted = stored.get(record.id, 0), counts.get(record.id, 0)
        if since > counted:
            words = f"{since} stored samples since the last sleep, but {counted} in its sum"
            yield Finding("sums", f"class '{record.label}': {words}", record.id)
    complete = [recent for recent in snapshot.recent if stored.get(recent.class_id) == recent.count]
    if not complete:
        return
    pipeline = Pipeline.from_store(store, top=snapshot.weights["top"])
    for recent in complete if full else _drawn(complete, snapshot.newest):
        present, codes = store.samples.get(ids[classes == recent.class_id])
        if present.all() and _differs(pipeline, codes, recent):
            words = "the sum since the last sleep differs from that of its stored samples"
            yield Finding("sums", f"class '{recent.label}': {words}", recent.class_id)


def _samples_since(store: Store, snapshot: Snapshot) -> tuple[Ids, npt.NDArray[np.int32]]:
    """Return ids and class ids of the stored samples that the sums of a snapshot count."""
    ids, classes = store.samples.after(snapshot.generation.since, snapshot.newest - snapshot.generation.since)
    known = ids <= snapshot.newest
    return ids[known], classes[known]


def _drawn(sums: Sequence[RecentSum], newest: int) -> Iterator[RecentSum]:
    """Yield sums in random order until they count enough samples."""
    samples = 0
    for index in generator(newest, Purpose.CHECK).permutation(len(sums)):
        if samples and samples + sums[index].count > _SAMPLES:
            return
        samples += sums[index].count
        yield sums[index]


def _differs(pipeline: Pipeline, codes: npt.NDArray[np.uint8], recent: RecentSum) -> bool:
    total = np.zeros(len(recent.total))
    norms = 0.0
    for start in range(0, len(codes), _BATCH_SIZE):
        features = pipeline.features(codes[start : start + _BATCH_SIZE]).astype(np.float64)
        total += features.sum(axis=0)
        norms += float(np.linalg.norm(features, axis=1).sum())
    return not np.linalg.norm(total - recent.total) <= _TOLERANCE * norms  # also if it is not a number


def wrong_statistics(store: Store, snapshot: Snapshot, *, full: bool) -> Iterator[Finding]:
    """Yield a finding if the statistics of the head differ from those of the counted samples that are stored.

    A class of which counted samples were evicted cannot be compared. The matrix is compared if all classes are.

    Args:
        store: An open store.
        snapshot: Its rows and weights.
        full: Compare all classes, not only classes drawn at random with a few hundred samples.
    """
    statistics = stored_statistics(snapshot.statistics)
    if statistics is None:
        return
    ids, classes = store.samples.counted_with_classes(snapshot.newest)
    counted = {class_id: ids[classes == class_id] for class_id in np.unique(classes).tolist()}
    if any(len(ids) > statistics.count(class_id) for class_id, ids in counted.items()):
        yield Finding("statistics", "the statistics of the head count fewer samples than are marked as counted")
        return
    complete = [class_id for class_id, ids in counted.items() if len(ids) == statistics.count(class_id)]
    chosen = complete if full else _first_classes(complete, counted, snapshot.newest)
    pipeline = Pipeline.from_store(store, top=snapshot.weights["top"])
    again = FeatureStatistics.empty(len(statistics.gram))
    for class_id in chosen:
        for start in range(0, len(counted[class_id]), _BATCH_SIZE):
            codes = store.samples.get(counted[class_id][start : start + _BATCH_SIZE])[1]
            again.add(np.full(len(codes), class_id), pipeline.features(codes))
    chosen = [class_id for class_id in chosen if again.count(class_id) == statistics.count(class_id)]  # none evicted
    pairs = [(statistics.sum_of(class_id), again.sum_of(class_id)) for class_id in chosen]
    if set(chosen) >= set(statistics.class_ids.tolist()):
        pairs.append((statistics.gram, again.gram))
    if any(_far(one, other) for one, other in pairs):
        yield Finding("statistics", "the statistics of the head differ from those of the samples that they count")


def _first_classes(classes: Sequence[int], ids: Mapping[int, Ids], newest: int) -> list[int]:
    """Return classes in random order until they have enough samples."""
    chosen: list[int] = []
    samples = 0
    for index in generator(newest, Purpose.CHECK).permutation(len(classes)):
        if chosen and samples + len(ids[classes[index]]) > _SAMPLES:
            break
        samples += len(ids[classes[index]])
        chosen.append(classes[index])
    return chosen


def _far(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> bool:
    return not np.linalg.norm(one - other) <= _TOLERANCE * np.linalg.norm(other)
