"""Edits of what a learner knows: classes renamed, merged or forgotten, samples corrected or forgotten.

An edit changes the store and the heads of all generations that are kept, in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.contracts import Codes, Ids
from siesta.errors import BadInput
from siesta.head import FeatureStatistics, Head
from siesta.learner.state import BATCH_SIZE, LearnerState
from siesta.sleep.counted_statistics import counted_anew
from siesta.sleep.delta_sums import DeltaSums
from siesta.store import Generation, HeadEdit, NewSample, clean_label

__all__ = ["Edits"]


class Edits:
    """The edits of one learner; each is documented at the method of `Siesta` with the same name."""

    def __init__(self, state: LearnerState) -> None:
        self._state = state

    def rename(self, label: str, new: str) -> None:
        """Rename a class."""
        with self._state.changing():
            self._state.store.edits.rename(label, new)

    def merge(self, label: str, into: str) -> None:
        """Make the samples of one class samples of another."""
        store = self._state.store
        source, target = store.classes.named(label).id, store.classes.named(into).id
        with self._state.changing():
            statistics = self._statistics()
            if statistics is not None:
                statistics.merge(source, target)
            edit = _edit_heads(lambda head: head.with_merged(source, target))
            store.edits.merge(label, into, edit, _arrays(statistics))

    def forget(self, label: str) -> None:
        """Remove a class and its samples."""
        store = self._state.store
        class_id = store.classes.named(label).id
        with self._state.changing():
            statistics = self._without_class(class_id)
            edit = _edit_heads(lambda head: head.without_class(class_id))
            store.edits.forget_class(label, edit, _arrays(statistics))

    def forget_sample(self, sample_id: int) -> None:
        """Remove one sample, or take one rejection back."""
        state = self._state
        with state.changing():
            if sample_id in state.store.rejections.classes():
                state.store.edits.forget_rejection(sample_id)
                return
            codes = self._codes_of(sample_id)
            features = state.pipeline.features(codes)
            statistics = self._without_sample(sample_id, features)
            state.store.edits.forget_sample(sample_id, features[0], self._edit_without(sample_id), _arrays(statistics))

    def correct(self, sample_id: int, label: str) -> int:
        """Replace a sample by one with the same codes and another label; return the id of the new one."""
        state = self._state
        samples = state.store.samples
        with state.changing():
            codes = self._codes_of(sample_id)
            if state.labels[samples.class_of(sample_id)] == clean_label(label):
                raise BadInput(f"sample {sample_id} has the label '{label}' already: give another one")
            key = samples.key_of(sample_id)  # kept, so that its file is recognised and not learned again
            features = state.pipeline.features(codes)
            new = NewSample(label, codes.tobytes(), features[0], key)
            statistics = self._without_sample(sample_id, features)
            return state.store.edits.correct(sample_id, new, self._edit_without(sample_id), _arrays(statistics))

    def roll_back(self, number: int) -> None:
        """Activate the weights of another generation."""
        state = self._state
        with state.changing():
            weights = state.store.generations.read(state.store.generations.get(number))
            state.pipeline.load_top(weights["top"])
            since = state.store.generations.get(number).since
            statistics = counted_anew(state.store, state.pipeline, since)
            sums = DeltaSums(state.pipeline.features, Head.from_state(weights["head"]), statistics)
            state.store.swap.activate(number, sums)

    def _statistics(self) -> FeatureStatistics | None:
        """Return a copy of the statistics of all counted samples."""
        discriminant = self._state.discriminant
        return None if discriminant is None else discriminant.folded().base

    def _without_sample(self, sample_id: int, features: npt.NDArray[np.float32]) -> FeatureStatistics | None:
        """Return the statistics without a sample, whose z (1, D) is given."""
        statistics = self._statistics()
        samples = self._state.store.samples
        class_id = samples.class_of(sample_id)
        if statistics is not None and sample_id in samples.counted(class_id):
            statistics.remove(np.array([class_id]), features)
        return statistics

    def _without_class(self, class_id: int) -> FeatureStatistics | None:
        """Return the statistics without a class.

        Where they count samples of it that were evicted since, they are computed anew from the samples of the others.
        """
        state = self._state
        statistics = self._statistics()
        if statistics is None:
            return None
        ids = state.store.samples.counted(class_id)
        if statistics.count(class_id) == len(ids):
            for classes, features in self._features_of(ids):
                statistics.remove(classes, features)
            return statistics
        others = FeatureStatistics.empty(len(statistics.gram))
        for classes, features in self._features_of(np.setdiff1d(state.store.samples.counted(), ids)):
            others.add(classes, features)
        return others

    def _features_of(self, ids: Ids) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]]:
        """Yield class ids (B,) and z (B, D) of stored samples in batches."""
        samples = self._state.store.samples
        for start in range(0, len(ids), BATCH_SIZE):
            batch = ids[start : start + BATCH_SIZE]
            yield samples.classes_of(batch), self._state.pipeline.features(samples.get(batch)[1])

    def _codes_of(self, sample_id: int) -> Codes:
        """Return the codes (1, code_bytes) of a stored sample."""
        self._state.store.samples.class_of(sample_id)  # raises `BadInput` if there is no such sample
        _, codes = self._state.store.samples.get(np.array([sample_id], dtype=np.int64))
        return codes

    def _edit_without(self, sample_id: int) -> HeadEdit:
        """Return the edit that takes a sample out of every head that counts it."""
        class_id = self._state.store.samples.class_of(sample_id)

        def edit(generation: Generation, state: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
            head = Head.from_state(state)
            return (head.without_sample(class_id) if sample_id <= generation.since else head).state()

        return edit


def _arrays(statistics: FeatureStatistics | None) -> Mapping[str, npt.NDArray[Any]] | None:
    """Return statistics as they are stored."""
    return None if statistics is None else statistics.arrays()


def _edit_heads(change: Callable[[Head], Head]) -> HeadEdit:
    """Return an edit that makes the same change to the head of every generation."""
    return lambda _, state: change(Head.from_state(state)).state()
