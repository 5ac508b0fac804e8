"""F: a cosine softmax whose class vectors are running means awake and trained parameters asleep.

A class's vector is kept as (vector, count) as of the last sleep plus (sum, count) of what was taught since; f_k is
their weighted mean, which is the paper's recursion f_k <- (c_k f_k + z) / (c_k + 1) written out.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["Head", "cosine_logits"]


def cosine_logits(features: Tensor, vectors: Tensor, scale: Tensor | float) -> Tensor:
    """a_k / tau of the paper's equation 1, for features (B, D) and class vectors (K, D): (B, K)."""
    return scale * F.linear(F.normalize(features), F.normalize(vectors))


class Head:
    """Class vectors and temperature, row by row in the order of `class_ids`.

    Rows live in buffers that double when they are full, so that a new class costs the same however many there are.

    Example:
        >>> head = Head.empty(features=2, scale=10.0)
        >>> head.set_recent(4, torch.tensor([3.0, 0.0]), 3)
        >>> head.weights(), head.count(4)
        (tensor([[1., 0.]]), 3)
    """

    def __init__(self, class_ids: Tensor, vectors: Tensor, counts: Tensor, scale: float) -> None:
        """Takes what a sleep left.

        Args:
            class_ids: Which class each row is, ascending, (K,) int64.
            vectors: Class vectors as of the last sleep, (K, D).
            counts: Samples that each of them stands for, (K,) int64.
            scale: 1 / temperature.
        """
        self.scale = scale
        self._rows = {class_id: row for row, class_id in enumerate(class_ids.tolist())}
        self._ids, self._vectors, self._counts = class_ids.clone(), vectors.clone(), counts.clone()
        self._recent_counts = torch.zeros_like(counts)
        self._weights = vectors.clone()
        self._directions = F.normalize(vectors)

    @classmethod
    def empty(cls, features: int, scale: float) -> Head:
        """A head that knows no class yet."""
        none = torch.zeros(0, dtype=torch.int64)
        return cls(none, torch.zeros(0, features), none, scale)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def class_ids(self) -> Tensor:
        """Which class each row is, ascending, (K,)."""
        return self._ids[: len(self)]

    @property
    def counts(self) -> Tensor:
        """Samples that each class's vector of the last sleep stands for, (K,); 0 for a class never slept on."""
        return self._counts[: len(self)]

    def count(self, class_id: int) -> int:
        """c_k: all samples ever taught of a class."""
        row = self._rows[class_id]
        return int(self._counts[row] + self._recent_counts[row])

    def known(self, class_id: int) -> tuple[int, npt.NDArray[np.float64]]:
        """What the last sleep knew of a class: samples, and its vector (D,); zeros for one that it did not."""
        row = self._rows.get(class_id)
        if row is None:
            return 0, np.zeros(self._vectors.shape[1])
        return int(self._counts[row]), self._vectors[row].double().numpy()

    def taught(self) -> Tensor:
        """c_k of every class, (K,)."""
        return self.counts + self._recent_counts[: len(self)]

    def recent_ids(self) -> set[int]:
        """Classes of which something was taught since the last sleep."""
        return set(self.class_ids[self._recent_counts[: len(self)] > 0].tolist())

    def set_recent(self, class_id: int, total: Tensor, count: int) -> None:
        """Takes the sum (D,) and the number of the z taught since the last sleep; a new class gets a row."""
        row = self._rows.get(class_id)
        if row is None:
            row = self._append(class_id)
        self._recent_counts[row] = count
        base = int(self._counts[row])
        self._weights[row] = ((base * self._vectors[row].double() + total) / (base + count)).float()
        self._directions[row] = F.normalize(self._weights[row], dim=0)

    def _append(self, class_id: int) -> int:
        """One row more; class ids only ever grow, so order is kept."""
        row = len(self)
        if row == len(self._ids):
            self._grow(max(2 * row, 8))
        self._rows[class_id] = row
        self._ids[row] = class_id
        return row

    def _grow(self, capacity: int) -> None:
        for name in ("_ids", "_vectors", "_counts", "_recent_counts", "_weights", "_directions"):
            old: Tensor = getattr(self, name)
            new = torch.zeros(capacity, *old.shape[1:], dtype=old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def weights(self) -> Tensor:
        """f, one row a class: (K, D)."""
        return self._weights[: len(self)]

    def probabilities(self, features: Tensor, temperature: float = 1.0) -> Tensor:
        """Softmax of the paper's equation 1 for features (B, D): (B, K); a measured temperature comes on top."""
        return (self.scale / temperature * F.linear(F.normalize(features), self._directions[: len(self)])).softmax(
            dim=1
        )

    def consolidated(self, vectors: Tensor, scale: float, norm: float) -> Head:
        """The head after a sleep.

        SGD leaves each vector an arbitrary length, which the cosine ignores but the running mean does not: all are
        brought to `norm`, the mean length of z under the new top, and stand for every sample taught so far.

        Args:
            vectors: Trained class vectors, (K, D).
            scale: Trained 1 / temperature.
            norm: Mean |z|.
        """
        return Head(self.class_ids, F.normalize(vectors) * norm, self.taught(), scale)

    def without(self, class_id: int) -> Head:
        """As the last sleep left it, but for one class."""
        return self._of({known: entry for known, entry in self._entries().items() if known != class_id})

    def with_one_less(self, class_id: int) -> Head:
        """As the last sleep left it, a class standing for one sample less; without it when that was the last."""
        entries = self._entries()
        if class_id not in entries:
            return self
        count, vector = entries.pop(class_id)
        return self._of({**entries, class_id: (count - 1, vector)} if count > 1 else entries)

    def merged(self, class_id: int, into: int) -> Head:
        """As the last sleep left it, two classes as one: the mean of all that they stand for."""
        entries = self._entries()
        some = [entries.pop(known) for known in (class_id, into) if known in entries]
        if not some:
            return self
        count = sum(number for number, _ in some)
        vector = torch.stack([number * vector.double() for number, vector in some]).sum(dim=0) / max(count, 1)
        return self._of({**entries, into: (count, vector.float())})

    def _entries(self) -> dict[int, tuple[int, Tensor]]:
        """Count and vector of each class as of the last sleep."""
        return {known: (int(self._counts[row]), self._vectors[row]) for known, row in self._rows.items()}

    def _of(self, entries: dict[int, tuple[int, Tensor]]) -> Head:
        ids = sorted(entries)
        vectors = [entries[known][1] for known in ids]
        return Head(
            torch.tensor(ids, dtype=torch.int64),
            torch.stack(vectors) if vectors else torch.zeros(0, self._vectors.shape[1]),
            torch.tensor([entries[known][0] for known in ids], dtype=torch.int64),
            self.scale,
        )

    def is_finite(self) -> bool:
        """False once a sleep has diverged."""
        return math.isfinite(self.scale) and bool(torch.isfinite(self.weights()).all())

    def state(self) -> dict[str, Tensor]:
        """What lasts of a head besides the sums, which the store keeps."""
        return {
            "class_ids": self.class_ids,
            "vectors": self._vectors[: len(self)],
            "counts": self.counts,
            "scale": torch.tensor([self.scale], dtype=torch.float64),
        }

    @classmethod
    def from_state(cls, state: dict[str, Tensor]) -> Head:
        """The head that `state()` described."""
        return cls(state["class_ids"], state["vectors"], state["counts"], float(state["scale"]))
