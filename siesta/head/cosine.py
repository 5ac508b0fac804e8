"""The head F: a cosine softmax whose class vectors are running means while awake and trained parameters during sleep.

A class is kept as (vector, count) after the last sleep and (sum, count) of the features learned since. Its class vector
f_k is their weighted mean: the paper's recursion f_k <- (c_k f_k + z) / (c_k + 1), written out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Head", "unit_vectors"]

Ids = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]

_TINY = 1e-12  # the least length that is divided by, as in torch


def unit_vectors(vectors: Vectors) -> Vectors:
    """Return vectors (..., D) with length one; a vector of zeros is not changed."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, _TINY), dtype=np.float32)


class Head:
    """Class vectors and temperature; row k belongs to the class `class_ids[k]`.

    The rows are stored in buffers that double when they are full, so that adding a class takes amortised constant time.

    Example:
        >>> head = Head.empty(features=2, scale=10.0)
        >>> head.set_recent(4, np.array([3.0, 0.0]), 3)
        >>> head.weights().tolist(), head.count(4)
        ([[1.0, 0.0]], 3)
    """

    def __init__(self, class_ids: Ids, vectors: Vectors, counts: Counts, scale: float) -> None:
        """Start from the result of a sleep.

        Args:
            class_ids: The class of each row, ascending, (K,) int64.
            vectors: Class vectors after the sleep, (K, D).
            counts: The number of samples behind each vector, (K,) int64.
            scale: 1 / temperature.
        """
        self.scale = scale
        self._rows = {class_id: row for row, class_id in enumerate(class_ids.tolist())}
        self._ids = class_ids.copy()
        self._vectors = vectors.copy()
        self._counts = counts.copy()
        self._recent_counts = np.zeros_like(counts)
        self._weights = vectors.copy()
        self._directions = unit_vectors(vectors)

    @classmethod
    def empty(cls, features: int, scale: float) -> Head:
        """Return a head without classes."""
        none = np.zeros(0, np.int64)
        return cls(none, np.zeros((0, features), np.float32), none, scale)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def class_ids(self) -> Ids:
        """The class of each row, ascending, (K,)."""
        return self._ids[: len(self)]

    @property
    def counts(self) -> Counts:
        """The number of samples in each class vector after the last sleep, (K,); 0 for classes learned since."""
        return self._counts[: len(self)]

    def count(self, class_id: int) -> int:
        """Return c_k, the number of samples of a class ever learned."""
        row = self._rows[class_id]
        return int(self._counts[row] + self._recent_counts[row])

    def at_last_sleep(self, class_id: int) -> tuple[int, npt.NDArray[np.float64]]:
        """Return the count and vector (D,) of a class after the last sleep; zeros for a class learned since."""
        row = self._rows.get(class_id)
        if row is None:
            return 0, np.zeros(self._vectors.shape[1])
        return int(self._counts[row]), self._vectors[row].astype(np.float64)

    def total_counts(self) -> Counts:
        """Return c_k of every class, (K,)."""
        return np.asarray(self.counts + self._recent_counts[: len(self)])

    def recent_class_ids(self) -> set[int]:
        """Return the ids of the classes with samples learned since the last sleep."""
        return set(self.class_ids[self._recent_counts[: len(self)] > 0].tolist())

    def set_recent(self, class_id: int, total: npt.NDArray[np.float64], count: int) -> None:
        """Set the sum (D,) and the count of the features of a class learned since the last sleep; add a new class."""
        row = self._rows.get(class_id)
        if row is None:
            row = self._append(class_id)
        self._recent_counts[row] = count
        base = int(self._counts[row])
        self._weights[row] = (base * self._vectors[row].astype(np.float64) + total) / (base + count)
        self._directions[row] = unit_vectors(self._weights[row])

    def _append(self, class_id: int) -> int:
        """Add a row; new class ids are larger than all others, so the rows stay ascending."""
        row = len(self)
        if row == len(self._ids):
            self._grow(max(2 * row, 8))
        self._rows[class_id] = row
        self._ids[row] = class_id
        return row

    def _grow(self, capacity: int) -> None:
        for name in ("_ids", "_vectors", "_counts", "_recent_counts", "_weights", "_directions"):
            old: npt.NDArray[Any] = getattr(self, name)
            new = np.zeros((capacity, *old.shape[1:]), old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def weights(self) -> Vectors:
        """Return the class vectors f, (K, D)."""
        return self._weights[: len(self)]

    def directions(self) -> Vectors:
        """Return the class vectors with length one, (K, D)."""
        return self._directions[: len(self)]

    def logits(self, features: Vectors) -> npt.NDArray[np.float32]:
        """Return a_k / tau of the paper's equation 1, (B, K), for features (B, D)."""
        return np.asarray(self.scale * (unit_vectors(features) @ self.directions().T), dtype=np.float32)

    def closeness(self, features: npt.NDArray[np.float32], rows: npt.NDArray[np.int64]) -> None:
        """Return None: the logits of this head are cosines already; compare `Discriminant.closeness`."""

    def after_sleep(self, vectors: Vectors, scale: float, norm: float) -> Head:
        """Return the head after a sleep, whose vectors count every sample learned so far.

        SGD leaves each vector an arbitrary length, which the cosine ignores but the running mean does not. All are
        rescaled to `norm`, the mean length of z with the new top.

        Args:
            vectors: Trained class vectors, (K, D).
            scale: Trained 1 / temperature.
            norm: Mean |z|.
        """
        return Head(self.class_ids, unit_vectors(vectors) * np.float32(norm), self.total_counts(), scale)

    def without_class(self, class_id: int) -> Head:
        """Return the head after the last sleep without one class."""
        return self._from_entries({key: entry for key, entry in self._entries().items() if key != class_id})

    def without_sample(self, class_id: int) -> Head:
        """Return the head after the last sleep with one sample less of a class, or without it if that was the last."""
        entries = self._entries()
        if class_id not in entries:
            return self
        count, vector = entries.pop(class_id)
        return self._from_entries({**entries, class_id: (count - 1, vector)} if count > 1 else entries)

    def with_merged(self, class_id: int, into: int) -> Head:
        """Return the head after the last sleep with two classes merged into their weighted mean."""
        entries = self._entries()
        merged = [entries.pop(key) for key in (class_id, into) if key in entries]
        if not merged:
            return self
        count = sum(part for part, _ in merged)
        vector = sum(part * vector.astype(np.float64) for part, vector in merged) / max(count, 1)
        return self._from_entries({**entries, into: (count, np.asarray(vector, dtype=np.float32))})

    def _entries(self) -> dict[int, tuple[int, Vectors]]:
        """Return count and vector of each class after the last sleep."""
        return {class_id: (int(self._counts[row]), self._vectors[row]) for class_id, row in self._rows.items()}

    def _from_entries(self, entries: dict[int, tuple[int, Vectors]]) -> Head:
        ids = sorted(entries)
        vectors = [entries[class_id][1] for class_id in ids]
        return Head(
            np.array(ids, np.int64),
            np.stack(vectors) if vectors else np.zeros((0, self._vectors.shape[1]), np.float32),
            np.array([entries[class_id][0] for class_id in ids], np.int64),
            self.scale,
        )

    def is_finite(self) -> bool:
        """Return False if a sleep has diverged."""
        return math.isfinite(self.scale) and bool(np.isfinite(self.weights()).all())

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that are stored; the sums since the last sleep are in the database."""
        return {
            "class_ids": self.class_ids,
            "vectors": self._vectors[: len(self)],
            "counts": self.counts,
            "scale": np.array([self.scale]),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> Head:
        """Return the head with this state."""
        return cls(state["class_ids"], state["vectors"], state["counts"], float(state["scale"][0]))
