"""The images that a batch learner keeps of each class, the most important first."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from siesta.contracts import Ids, Selection

__all__ = ["Exemplars", "unit_rows"]

_TINY = 1e-12  # shortest feature that is divided by its length


def unit_rows(features: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Return features (N, D) of length one."""
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    unit: npt.NDArray[np.floating] = features / np.maximum(lengths, _TINY)
    return unit


class Exemplars:
    """Ids of the kept images by row of their class, in the order in which they were selected.

    Example:
        >>> kept = Exemplars({0: np.array([7, 3])})
        >>> kept.shorten(1)
        >>> kept.ids(), len(kept)
        (array([7]), 1)
    """

    def __init__(self, by_row: Mapping[int, Ids] | None = None) -> None:
        self._by_row = dict(by_row or {})

    def __len__(self) -> int:
        return sum(map(len, self._by_row.values()))

    def ids(self) -> Ids:
        """Return the ids of all classes."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *self._by_row.values()])

    def of(self, row: int) -> Ids:
        """Return the ids of a class."""
        return self._by_row.get(row, np.zeros(0, dtype=np.int64))

    def shorten(self, count: int) -> None:
        """Keep the most important of each class only."""
        self._by_row = {row: ids[:count] for row, ids in self._by_row.items()}

    def select(
        self,
        row: int,
        ids: Ids,
        features: npt.NDArray[np.floating],
        count: int,
        selection: Selection,
        rng: np.random.Generator,
    ) -> None:
        """Choose a class's images anew from candidates (N,) with features (N, D), compared at length one."""
        self._by_row[row] = ids[selection(unit_rows(features), min(count, len(ids)), rng)]

    def state(self) -> dict[str, Tensor]:
        """Return tensors to restore this from."""
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *(np.full(len(i), r) for r, i in self._by_row.items())])
        return {"exemplars.ids": torch.from_numpy(self.ids()), "exemplars.rows": torch.from_numpy(rows)}

    @classmethod
    def from_state(cls, state: Mapping[str, Tensor]) -> Exemplars:
        """Restore exemplars from `state()`."""
        ids, rows = state["exemplars.ids"].numpy(), state["exemplars.rows"].numpy()
        return cls({int(row): ids[rows == row] for row in dict.fromkeys(rows.tolist())})
