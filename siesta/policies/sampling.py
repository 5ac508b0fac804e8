"""Sampling that policies share: by priority, and balanced over classes, in amortised constant time a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from siesta.contracts import Ids, Memory

__all__ = ["Passes", "Priorities", "balanced_rounds", "weighted_draws", "weighted_passes"]

_CHUNK = 65_536  # ids planned at a time
_FIRST_CHUNK = 2_048

Priorities = npt.NDArray[np.float64]
"""A number >= 0 for each sample; only the ratios matter, and all zeros mean equal priorities."""

Passes = Callable[[int], npt.NDArray[np.int64]]
"""The next P passes through the n samples of a class: P -> positions (P, n), a permutation in each row."""


def weighted_draws(ids: Ids, priorities: Priorities, rng: np.random.Generator) -> Iterator[Ids]:
    """Yield ids (N,) forever, drawn with replacement and a probability proportional to their priority (N,)."""
    cumulative = np.cumsum(_nonzero(priorities))
    cumulative /= cumulative[-1]
    while True:
        yield ids[np.searchsorted(cumulative, rng.random(_CHUNK), side="right")]


def weighted_passes(priorities: Priorities, rng: np.random.Generator) -> Passes:
    """Return passes that draw without replacement with a probability proportional to the priority (n,).

    Such an order is that of exponential random times divided by the priorities (Efraimidis and Spirakis, 2006).
    """
    rates = _nonzero(priorities)

    def passes(count: int) -> npt.NDArray[np.int64]:
        with np.errstate(divide="ignore", over="ignore"):  # a priority of zero has an infinite time: it comes last
            times = rng.standard_exponential((count, len(rates))) / rates
        return np.argsort(times, axis=1)

    return passes


def _nonzero(priorities: Priorities) -> Priorities:
    return priorities if priorities.any() else np.ones_like(priorities)


def balanced_rounds(
    memory: Memory,
    passes_of: Callable[[npt.NDArray[np.int64]], Passes],
    rng: np.random.Generator,
    chunk_size: int = _CHUNK,
) -> Iterator[Ids]:
    """Yield ids forever, in rounds that take the next sample of every class, the classes in random order.

    All samples of a class are drawn before any of them repeats. So at any moment two classes differ by at most one
    draw, and two samples of a class by at most one rehearsal. Time and memory are linear in the number of draws.

    Args:
        memory: The stored samples.
        passes_of: Returns the passes through a class, given the positions (n,) of its samples in the memory.
        rng: Shuffles the classes of each round.
        chunk_size: About how many ids to plan at a time, 65,536 at most.
    """
    by_class = np.argsort(memory.classes, kind="stable")
    _, starts = np.unique(memory.classes[by_class], return_index=True)
    streams = [_ClassStream(memory.ids[members], passes_of(members)) for members in np.split(by_class, starts[1:])]
    largest = min(chunk_size, _CHUNK)
    size = _FIRST_CHUNK
    while True:
        size = min(2 * size, largest)  # a short sleep does not wait for the plan of a long one
        rounds = -(-size // len(streams))
        chunk = np.stack([stream.take(rounds) for stream in streams], axis=1)  # (rounds, classes)
        yield rng.permuted(chunk, axis=1).reshape(-1)


class _ClassStream:
    """The samples of one class, pass after pass."""

    def __init__(self, ids: Ids, passes: Passes) -> None:
        self._ids = ids
        self._passes = passes
        self._pending = ids[passes(1)[0]]

    def take(self, count: int) -> Ids:
        """Return the next `count` ids."""
        missing = count - len(self._pending)
        if missing > 0:
            passes = -(-missing // len(self._ids))
            self._pending = np.concatenate([self._pending, self._ids[self._passes(passes)].reshape(-1)])
        taken, self._pending = np.split(self._pending, [count])
        return taken
