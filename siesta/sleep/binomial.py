"""Bounds on a proportion that know the number of samples, after Clopper and Pearson (1934)."""

from __future__ import annotations

import math

__all__ = ["at_most", "interval", "interval_of", "percent_with_interval"]

_ITERATIONS = 50  # of the bisection


def at_most(count: int, samples: int, chance: float) -> float:
    """Return the probability that an event with this chance happens at most `count` times in so many samples.

    Example:
        >>> round(at_most(1, 2, 0.5), 6)
        0.75
    """
    if count >= samples or chance <= 0:
        return 1.0
    if chance >= 1:
        return 0.0
    terms = [
        math.lgamma(samples + 1)
        - math.lgamma(times + 1)
        - math.lgamma(samples - times + 1)
        + times * math.log(chance)
        + (samples - times) * math.log1p(-chance)
        for times in range(count + 1)
    ]
    return min(math.fsum(map(math.exp, terms)), 1.0)


def interval(count: int, samples: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval that holds the chance of an event with at least this confidence.

    Args:
        count: How often it happened.
        samples: In how many samples, at least one.
        confidence: Of the interval, both sides together.

    Example:
        >>> [round(bound, 3) for bound in interval(19, 20)]
        [0.751, 0.999]
    """
    doubt = (1 - confidence) / 2
    return 1 - _highest(samples - count, samples, doubt), _highest(count, samples, doubt)


def _highest(count: int, samples: int, doubt: float) -> float:
    """Return the largest chance with which at most `count` events in so many samples are as likely as `doubt`."""
    low, high = 0.0, 1.0
    if count >= samples:
        return high
    for _ in range(_ITERATIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if at_most(count, samples, middle) > doubt else (low, middle)
    return high


def interval_of(accuracy: float | None, samples: int) -> tuple[float, float] | None:
    """Return the 95 % interval of an accuracy on so many samples; None without any."""
    return None if accuracy is None or samples < 1 else interval(round(accuracy * samples), samples)


def percent_with_interval(accuracy: float, samples: int) -> str:
    """Return an accuracy on so many samples, at least one, in percent with its 95 % interval.

    Example:
        >>> percent_with_interval(0.75, 40)
        '75.0 % (95 % interval 59 to 87 %)'
    """
    low, high = interval(round(accuracy * samples), samples)
    return f"{100 * accuracy:.1f} % (95 % interval {100 * low:.0f} to {100 * high:.0f} %)"
