"""Held-out samples: stored but never rehearsed, to measure a sleep by."""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from siesta.contracts import Codes, Ids
from siesta.head import Discriminant, Head
from siesta.pipeline import Pipeline
from siesta.rng import Purpose, generator
from siesta.sleep.calibration import Confidence
from siesta.store import Store

__all__ = ["HeldOutSamples"]

_LARGEST = 1024
_BATCH_SIZE = 32


@dataclass(frozen=True)
class HeldOutSamples:
    """Samples that a sleep never rehearses, in random order.

    Attributes:
        ids: Sample ids, (N,).
        classes: Class id of each, (N,).
        codes: Codes of each, (N, code_bytes); None for stored samples, whose codes are in the store.
    """

    ids: Ids
    classes: npt.NDArray[np.int32]
    codes: Codes | None = None

    @classmethod
    def choose(cls, store: Store, newest: int, seed: int, limit: int = _LARGEST) -> HeldOutSamples:
        """Return at most `limit` of the stored held-out samples up to the id `newest`."""
        ids, classes = store.samples.held_out(newest)
        order = generator(seed, Purpose.HELD_OUT_SAMPLES).permutation(len(ids))[:limit]
        return cls(ids[order], classes[order])

    def halves(self, level: int = 0) -> tuple[HeldOutSamples, HeldOutSamples]:
        """Split the samples into two parts of about equal size; a sample is in the same part in every sleep.

        A hash of its id decides. The parity of the id would not do, because held-out samples of one class are often a
        fixed number of ids apart.

        Args:
            level: Which byte of the hash decides; with another one a half is split again.
        """
        digests = (sha256(str(number).encode()).digest() for number in self.ids.tolist())
        in_first = np.array([digest[level] % 2 == 0 for digest in digests], bool)
        return self._part(in_first), self._part(~in_first)

    def first(self, count: int) -> HeldOutSamples:
        """Return the first `count` samples."""
        return self._part(slice(count))

    def _part(self, chosen: npt.NDArray[np.bool_] | slice) -> HeldOutSamples:
        return HeldOutSamples(
            self.ids[chosen], self.classes[chosen], None if self.codes is None else self.codes[chosen]
        )

    def _batch(self, store: Store, batch: slice) -> tuple[npt.NDArray[np.bool_], Codes]:
        """Return which samples of a batch still exist, and their codes."""
        if self.codes is None:
            return store.samples.get(self.ids[batch])
        return np.ones(len(self.ids[batch]), bool), self.codes[batch]

    def measure(
        self, store: Store, pipeline: Pipeline, classifier: Head | Discriminant, seconds: float | None = None
    ) -> tuple[Confidence, HeldOutSamples]:
        """Classify the samples with the pipeline's top and a head.

        Args:
            store: The store with the codes of stored samples.
            pipeline: The pipeline that computes z from codes.
            classifier: The head that computes logits from z; it knows the classes of all samples.
            seconds: Time after which to stop; at least one batch is measured.

        Returns:
            Their confidence, and those that there was time for.
        """
        start = time.monotonic()
        done = 0
        row_of = {class_id: row for row, class_id in enumerate(classifier.class_ids.tolist())}
        logits = [np.zeros((0, len(row_of)), np.float32)]
        rows = [np.zeros(0, np.int64)]
        closeness: list[npt.NDArray[np.float32] | None] = []
        while done < len(self.ids) and (not done or seconds is None or time.monotonic() - start < seconds):
            batch = slice(done, done + _BATCH_SIZE)
            stored, codes = self._batch(store, batch)
            if len(codes):
                features = pipeline.features(codes)
                logits.append(classifier.logits(features))
                rows.append(np.array([row_of[class_id] for class_id in self.classes[batch][stored].tolist()]))
                closeness.append(classifier.closeness(features, logits[-1].argmax(axis=1)))
            done += _BATCH_SIZE
        known = [part for part in closeness if part is not None]
        near = np.concatenate(known) if known else None
        return Confidence.of(np.concatenate(logits), np.concatenate(rows), near), self.first(done)
