"""Learning awake: samples are encoded and stored, and the running means of their classes move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from siesta.contracts import Codes
from siesta.errors import BadInput, SiestaError
from siesta.learner.state import LearnerState
from siesta.pipeline import InputLike, batched
from siesta.store import NewSample, OutdatedFeatures

__all__ = ["SAMPLES_PER_TRANSACTION", "OnlineLearning"]

SAMPLES_PER_TRANSACTION = 32
"""How many samples `learn_many` stores in one transaction."""

_MEASURE_EVERY = 8  # samples between two measurements of the codec's error


class OnlineLearning:
    """Learns samples one transaction at a time, with the weights in use."""

    def __init__(self, state: LearnerState) -> None:
        self._state = state
        self._since_measurement = 0

    def learn(self, inputs: Iterable[InputLike], labels: Iterable[str], keys: Iterable[int | None] | None) -> list[int]:
        """Learn labelled images or vectors in order; see `Siesta.learn_many`."""
        self._state.require_awake()
        ids: list[int] = []
        try:
            for batch in batched(_samples(inputs, labels, keys), SAMPLES_PER_TRANSACTION):
                ids += self._learn_batch(batch)
        except SiestaError as error:
            error.safe = len(ids)
            raise
        return ids

    def _learn_batch(self, batch: list[tuple[InputLike, str, int | None]]) -> list[int]:
        state = self._state
        read = [state.read(given) for given, _, _ in batch]
        codec_error = None
        self._since_measurement += len(read)
        if self._since_measurement >= _MEASURE_EVERY:
            codes, codec_error = state.pipeline.encode_measured(read)
            self._since_measurement = 0
        else:
            codes = state.pipeline.encode(read)
        return self._store(codes, [label for _, label, _ in batch], [key for _, _, key in batch], codec_error)

    def learn_encoded(self, codes: Codes, labels: Sequence[str], keys: Sequence[int | None] | None) -> list[int]:
        """Learn samples that are encoded already; see `Siesta.learn_encoded`."""
        self._state.require_awake()
        self._state.validate_codes(codes)
        keys = [None] * len(codes) if keys is None else keys
        if not len(codes) == len(labels) == len(keys):
            raise BadInput(
                f"got {len(codes)} codes, {len(labels)} labels and {len(keys)} keys: give one of each for every sample"
            )
        ids: list[int] = []
        for start in range(0, len(codes), SAMPLES_PER_TRANSACTION):
            batch = slice(start, start + SAMPLES_PER_TRANSACTION)
            ids += self._store(codes[batch], labels[batch], keys[batch])
        return ids

    def reject(self, image: InputLike, label: str) -> int:
        """Record that a label is wrong for an image; see `Siesta.reject`."""
        self._state.require_awake()
        self._state.refresh()  # before encoding: another process may have replaced the codec
        rejection = self._state.store.reject(label, self._state.encode([image]).tobytes())
        self._state.read_rejections()
        return rejection

    def _store(
        self, codes: Codes, labels: Sequence[str], keys: Sequence[int | None], codec_error: float | None = None
    ) -> list[int]:
        """Store samples in one transaction and update the means of their classes."""
        state = self._state
        state.refresh()
        features = state.pipeline.features(codes)
        samples = list(map(NewSample, labels, map(bytes, codes), features, keys))
        try:
            stored = state.store.add(samples, state.generation, codec_error)
            state.count(stored, features)
        except OutdatedFeatures:  # a sleep in another process has just ended: compute the features anew
            return self._store(codes, labels, keys, codec_error)
        except BaseException:
            state.load_if_possible()  # an interrupt may leave the means behind the store
            raise
        return [sample.id for sample in stored]


def _samples(
    inputs: Iterable[InputLike], labels: Iterable[str], keys: Iterable[int | None] | None
) -> Iterator[tuple[InputLike, str, int | None]]:
    """Yield each image or vector with its label and key; raise `BadInput` where one of the three runs out first."""
    missing: Any = object()
    for given, label, key in zip_longest(inputs, labels, () if keys is None else keys, fillvalue=missing):
        if given is missing or label is missing or (key is missing and keys is not None):
            raise BadInput(
                "the numbers of samples, labels and keys differ: give one label, and one key, for each sample"
            )
        yield given, label, None if key is missing else key
