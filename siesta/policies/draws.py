"""Random draws that policies share: by probability, and balanced over classes. No draw looks at all samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from siesta.contracts import Ids, Memory

__all__ = ["Orders", "Priorities", "balanced", "weighted", "weighted_orders"]

_PICKS_AT_ONCE = 65_536
_FIRST_PICKS = 2_048

Priorities = npt.NDArray[np.float64]
"""One number a sample, zero or above; only their ratios count, and all zero means that all are alike."""

Orders = Callable[[int], npt.NDArray[np.int64]]
"""The next passes through a class: a number P -> positions (P, n), each row an order of all n samples."""


def weighted(ids: Ids, priorities: Priorities, rng: np.random.Generator) -> Iterator[Ids]:
    """Yields ids (N,) for ever, each drawn anew with probability proportional to its priority (N,)."""
    cumulative = np.cumsum(_some_above_zero(priorities))
    cumulative /= cumulative[-1]
    while True:
        yield ids[np.searchsorted(cumulative, rng.random(_PICKS_AT_ONCE), side="right")]


def weighted_orders(priorities: Priorities, rng: np.random.Generator) -> Orders:
    """Passes that each draw without replacement, the next sample always with probability by its priority (n,).

    Such an order is that of exponential times divided by the priorities (Efraimidis and Spirakis, 2006).
    """
    rates = _some_above_zero(priorities)

    def orders(passes: int) -> npt.NDArray[np.int64]:
        with np.errstate(divide="ignore", over="ignore"):  # a priority of zero waits for ever: it comes last
            times = rng.standard_exponential((passes, len(rates))) / rates
        return np.argsort(times, axis=1)

    return orders


def _some_above_zero(priorities: Priorities) -> Priorities:
    return priorities if priorities.any() else np.ones_like(priorities)


def balanced(
    memory: Memory,
    orders_of: Callable[[npt.NDArray[np.int64]], Orders],
    rng: np.random.Generator,
    at_once: int = _PICKS_AT_ONCE,
) -> Iterator[Ids]:
    """Yields rounds for ever: each takes the next sample of every class, the classes in random order.

    A class is gone through before any of its samples repeats, so after any number of picks two classes differ by at
    most one pick, and two samples of a class by at most one rehearsal. Time and memory are linear in the picks.

    Args:
        memory: What is stored.
        orders_of: How to go through a class, given the positions (n,) of its samples in the memory.
        rng: Shuffles the classes of each round.
        at_once: About how many picks to plan at a time, 65,536 at most.
    """
    by_class = np.argsort(memory.classes, kind="stable")
    _, starts = np.unique(memory.classes[by_class], return_index=True)
    walks = [_Walk(memory.ids[members], orders_of(members)) for members in np.split(by_class, starts[1:])]
    planned, most = _FIRST_PICKS, min(at_once, _PICKS_AT_ONCE)
    while True:
        planned = min(2 * planned, most)  # a short sleep does not wait for the plan of a long one
        rounds = -(-planned // len(walks))
        chunk = np.stack([walk.take(rounds) for walk in walks], axis=1)  # (rounds, classes)
        yield rng.permuted(chunk, axis=1).reshape(-1)


class _Walk:
    """One class's samples, pass after pass."""

    def __init__(self, ids: Ids, orders: Orders) -> None:
        self._ids, self._orders = ids, orders
        self._ahead = ids[orders(1)[0]]

    def take(self, count: int) -> Ids:
        """The next `count` ids."""
        if count > len(self._ahead):
            passes = -(-(count - len(self._ahead)) // len(self._ids))
            self._ahead = np.concatenate([self._ahead, self._ids[self._orders(passes)].reshape(-1)])
        taken, self._ahead = np.split(self._ahead, [count])
        return taken
