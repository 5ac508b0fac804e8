"""Schedules: how the learning rate changes over a sleep, as a function of the share of the budget that is spent."""

from __future__ import annotations

import math
from collections.abc import Callable

from siesta.errors import BadInput

__all__ = ["SCHEDULES", "Schedule", "cosine", "falling_at", "half_cosine", "make_schedule", "one_cycle", "steps"]

_RISE = 0.3  # share of the sleep in which the learning rate rises
_START = 1 / 25  # learning rate at the start, as a share of its maximum: the default of torch's OneCycleLR
_END = 1 / 25e4  # and at the end
_DROPS = (15 / 50, 30 / 50, 45 / 50)  # of the paper's 50 epochs of base initialisation
_WARM_UP = 5 / 600  # of the paper's 600 epochs of offline training

Schedule = Callable[[float, float], float]
"""(share of the budget spent before a batch, share that the batch takes) -> share of the maximum learning rate."""


def one_cycle(fraction: float, batch: float = 0.0) -> float:
    """Rise along a cosine for 30 % of a sleep, then fall to almost zero; equal to torch's OneCycleLR."""
    if batch >= 1:  # there is only one batch
        return _START
    rise = max(_RISE - batch, 0.0)
    if fraction <= rise and rise > 0:
        return _cosine_between(_START, 1.0, fraction / rise)
    return _cosine_between(1.0, _END, (fraction - rise) / (1 - batch - rise))


def _cosine_between(first: float, last: float, part: float) -> float:
    return last + (first - last) * (1 + math.cos(math.pi * min(part, 1.0))) / 2


def steps(fraction: float, _batch: float = 0.0) -> float:
    """Fall to a tenth after 15, 30 and 45 of 50 epochs: the paper's base initialisation."""
    return float(0.1 ** sum(fraction >= drop for drop in _DROPS))


def cosine(fraction: float, batch: float = 0.0) -> float:
    """Rise linearly for 5 of 600 epochs, then fall to zero along a cosine: the paper's offline learner."""
    if fraction < _WARM_UP:
        return min((fraction + batch) / _WARM_UP, 1.0)  # at the end of the batch, so that the first one learns too
    return (1 + math.cos(math.pi * min((fraction - _WARM_UP) / (1 - _WARM_UP), 1.0))) / 2


def falling_at(*drops: float) -> Schedule:
    """Return a schedule that falls to a tenth at each of these shares of the budget.

    Example:
        >>> [falling_at(0.5, 0.75)(fraction) for fraction in (0.0, 0.5, 0.8)]
        [1.0, 0.1, 0.010000000000000002]
    """

    def share(fraction: float, _batch: float = 0.0) -> float:
        return float(0.1 ** sum(fraction >= drop for drop in drops))

    return share


def half_cosine(fraction: float, _batch: float = 0.0) -> float:
    """Fall to zero along a cosine, without a rise."""
    return (1 + math.cos(math.pi * min(fraction, 1.0))) / 2


SCHEDULES: dict[str, Schedule] = {"one_cycle": one_cycle, "steps": steps, "cosine": cosine}


def make_schedule(name: str) -> Schedule:
    """Return the schedule with this name."""
    if name not in SCHEDULES:
        raise BadInput(f"there is no schedule '{name}': choose one of {', '.join(SCHEDULES)}")
    return SCHEDULES[name]
