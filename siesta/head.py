"""F: a cosine softmax whose class vectors are running means awake and trained parameters asleep.

A class's vector is kept as (vector, count) as of the last sleep plus (sum, count) of what was taught since; f_k is
their weighted mean, which is the paper's recursion f_k <- (c_k f_k + z) / (c_k + 1) written out.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["Head", "cosine_logits"]


def cosine_logits(features: Tensor, vectors: Tensor, scale: Tensor | float) -> Tensor:
    """a_k / tau of the paper's equation 1, for features (B, D) and class vectors (K, D): (B, K)."""
    return scale * F.linear(F.normalize(features), F.normalize(vectors))


@dataclass
class Head:
    """Class vectors and temperature, row by row in the order of `class_ids`.

    Attributes:
        class_ids: Which class each row is, ascending, (K,) int64.
        vectors: Class vectors as of the last sleep, (K, D); zero for a class never slept on.
        counts: Samples that each of them stands for, (K,) int64.
        scale: 1 / temperature.

    Example:
        >>> head = Head.empty(features=2, scale=10.0)
        >>> head.set_recent(4, torch.tensor([3.0, 0.0]), 3)
        >>> head.weights(), head.count(4)
        (tensor([[1., 0.]]), 3)
    """

    class_ids: Tensor
    vectors: Tensor
    counts: Tensor
    scale: float

    def __post_init__(self) -> None:
        self._recent = torch.zeros(self.vectors.shape, dtype=torch.float64)
        self._recent_counts = torch.zeros(len(self.class_ids), dtype=torch.int64)
        self._rows = {class_id: row for row, class_id in enumerate(self.class_ids.tolist())}
        self._weights = self.vectors.clone()

    @classmethod
    def empty(cls, features: int, scale: float) -> Head:
        """A head that knows no class yet."""
        return cls(
            torch.zeros(0, dtype=torch.int64), torch.zeros(0, features), torch.zeros(0, dtype=torch.int64), scale
        )

    def __len__(self) -> int:
        return len(self._rows)

    def count(self, class_id: int) -> int:
        """c_k: all samples ever taught of a class."""
        row = self._rows[class_id]
        return int(self.counts[row] + self._recent_counts[row])

    def set_recent(self, class_id: int, total: Tensor, count: int) -> None:
        """Takes the sum (D,) and the number of the z taught since the last sleep; a new class gets a row."""
        row = self._rows.get(class_id)
        if row is None:
            row = self._append(class_id)
        self._recent[row] = total
        self._recent_counts[row] = count
        base = int(self.counts[row])
        self._weights[row] = ((base * self.vectors[row].double() + self._recent[row]) / (base + count)).float()

    def _append(self, class_id: int) -> int:
        """One row more; class ids only ever grow, so order is kept."""
        width = self.vectors.shape[1]
        self.class_ids = torch.cat([self.class_ids, torch.tensor([class_id])])
        self.vectors = torch.cat([self.vectors, torch.zeros(1, width)])
        self.counts = torch.cat([self.counts, torch.zeros(1, dtype=torch.int64)])
        self._recent = torch.cat([self._recent, torch.zeros(1, width, dtype=torch.float64)])
        self._recent_counts = torch.cat([self._recent_counts, torch.zeros(1, dtype=torch.int64)])
        self._weights = torch.cat([self._weights, torch.zeros(1, width)])
        self._rows[class_id] = len(self._rows)
        return self._rows[class_id]

    def weights(self) -> Tensor:
        """f, one row a class: (K, D)."""
        return self._weights

    def new_classes(self) -> Tensor:
        """Ids of the classes that no sleep has seen yet."""
        return self.class_ids[self.counts == 0]

    def probabilities(self, features: Tensor) -> Tensor:
        """Softmax of the paper's equation 1 for features (B, D): (B, K)."""
        return cosine_logits(features, self._weights, self.scale).softmax(dim=1)

    def consolidated(self, vectors: Tensor, scale: float, norm: float) -> Head:
        """The head after a sleep.

        SGD leaves each vector an arbitrary length, which the cosine ignores but the running mean does not: all are
        brought to `norm`, the mean length of z under the new top, and stand for every sample taught so far.

        Args:
            vectors: Trained class vectors, (K, D).
            scale: Trained 1 / temperature.
            norm: Mean |z|.
        """
        return Head(self.class_ids, F.normalize(vectors) * norm, self.counts + self._recent_counts, scale)

    def state(self) -> dict[str, Tensor]:
        """What lasts of a head besides the sums, which the store keeps."""
        return {
            "class_ids": self.class_ids,
            "vectors": self.vectors,
            "counts": self.counts,
            "scale": torch.tensor([self.scale], dtype=torch.float64),
        }

    @classmethod
    def from_state(cls, state: dict[str, Tensor]) -> Head:
        """The head that `state()` described."""
        return cls(state["class_ids"], state["vectors"], state["counts"], float(state["scale"]))
