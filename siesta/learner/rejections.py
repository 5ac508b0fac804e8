"""Rejections at prediction: a label's score falls for images that look like one for which it was said to be wrong."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
import numpy.typing as npt

from siesta.contracts import Codes
from siesta.head.cosine import unit_vectors
from siesta.pipeline import Pipeline
from siesta.store import Store

__all__ = ["Rejections", "stacked_codes"]

_BATCH_SIZE = 32
_DIFFERENT = 0.6  # the cosine between two images up to which a rejection of one does not count for the other
_SAME = 0.8  # ... and from which it counts fully; both are from `scripts.reject_trials`, see docs/reject.md


class Rejections:
    """The rejections of a learner, with the z of their images under the weights in use."""

    def __init__(self) -> None:
        self._classes: dict[int, int] = {}
        self._features: dict[int, npt.NDArray[np.float32]] = {}
        self._weights: Hashable = None

    def __len__(self) -> int:
        return len(self._classes)

    def use(self, classes: Mapping[int, int], weights: Hashable) -> None:
        """Use the rejections that are stored.

        Args:
            classes: The rejected class of each, by its id.
            weights: What changes with the weights of the network or the codec, and with them z.
        """
        if weights != self._weights:
            self._features.clear()
        self._weights = weights
        self._classes = dict(classes)
        self._features = {rejection: z for rejection, z in self._features.items() if rejection in classes}

    def embed(self, store: Store, pipeline: Pipeline) -> None:
        """Compute the z that are missing; a rejection that another process has just removed is left out."""
        missing = [rejection for rejection in self._classes if rejection not in self._features]
        for start in range(0, len(missing), _BATCH_SIZE):
            codes = store.rejections.get(missing[start : start + _BATCH_SIZE])
            if codes:
                self._features |= dict(zip(codes, pipeline.features(stacked_codes(codes)), strict=True))

    def factors(
        self, features: npt.NDArray[np.float32], centre: npt.NDArray[np.float32], class_ids: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float32]:
        """Return what the probabilities of images are multiplied by, (B, K): 0 for a label that was rejected for them.

        Args:
            features: Their z, (B, D); `embed` has computed those of the rejections.
            centre: The mean class vector (D,), from which z are seen.
            class_ids: The class of each column, (K,).
        """
        columns = {class_id: column for column, class_id in enumerate(class_ids.tolist())}
        known = {each: z for each, z in self._features.items() if self._classes[each] in columns}  # after a roll-back
        factors = np.ones((len(columns), len(features)), np.float32)
        if known:
            rejected = unit_vectors(np.stack(list(known.values())) - centre)
            likeness = rejected @ unit_vectors(features - centre).T  # (R, B)
            rows = [columns[self._classes[each]] for each in known]
            np.minimum.at(factors, rows, np.clip((_SAME - likeness) / (_SAME - _DIFFERENT), 0, 1))
        return factors.T


def stacked_codes(codes: Mapping[int, bytes]) -> Codes:
    """Return codes by id as an array (B, code_bytes)."""
    return np.stack([np.frombuffer(data, np.uint8) for data in codes.values()])
