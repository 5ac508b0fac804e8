"""The paper's default: as many samples of each class, uniformly inside it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from siesta.contracts import Ids, Memory

__all__ = ["BalancedUniform"]

_PICKS_AT_ONCE = 65_536


class BalancedUniform:
    """Draws in rounds: each round takes one sample of every class, the classes in random order.

    A class is gone through without replacement before any of its samples repeats, so after any number of picks two
    classes differ by at most one pick, and two samples of a class by at most one rehearsal.

    Example:
        >>> classes = np.array([7, 7, 7, 9], dtype=np.int32)
        >>> memory = Memory(np.arange(4), classes, np.zeros(4, dtype=np.int32), np.zeros(0, dtype=np.int32))
        >>> picks = next(BalancedUniform().picks(memory, np.random.default_rng(0)))[:6]
        >>> (picks == 3).sum(), sorted(picks[picks != 3].tolist())
        (np.int64(3), [0, 1, 2])
    """

    def picks(self, memory: Memory, rng: np.random.Generator) -> Iterator[Ids]:
        """Yields many rounds at once; time and memory are linear in the picks."""
        by_class = np.argsort(memory.classes, kind="stable")
        _, starts = np.unique(memory.classes[by_class], return_index=True)
        walks = [_Walk(ids, rng) for ids in np.split(memory.ids[by_class], starts[1:])]
        rounds = -(-_PICKS_AT_ONCE // len(walks))
        while True:
            chunk = np.stack([walk.take(rounds) for walk in walks], axis=1)  # (rounds, classes)
            yield rng.permuted(chunk, axis=1).reshape(-1)


class _Walk:
    """One class's samples, pass after shuffled pass."""

    def __init__(self, ids: Ids, rng: np.random.Generator) -> None:
        self._ids, self._rng = ids, rng
        self._ahead = rng.permutation(ids)

    def take(self, count: int) -> Ids:
        """The next `count` ids."""
        if count > len(self._ahead):
            passes = -(-(count - len(self._ahead)) // len(self._ids))
            more = self._rng.permuted(np.tile(self._ids, (passes, 1)), axis=1).reshape(-1)
            self._ahead = np.concatenate([self._ahead, more])
        taken, self._ahead = np.split(self._ahead, [count])
        return taken
