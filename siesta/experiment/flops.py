"""The achieved rate of a method, and what it would cost on more data.

The forecast assumes that a sample costs the same whenever it comes (no larger head, no slower disk), that a sleep
spends the same m updates however much is stored (true of policies that look at ids and classes; one that embeds its
whole memory grows with it), that sleeps come every so many samples and once more at the end, and that seconds grow as
FLOPs do. Base initialisation and inference are left out, as in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from siesta.contracts import Resources
from siesta.errors import BadInput

__all__ = ["Forecast", "achieved_rate", "extrapolate"]

_LEARNING = ("wake", "sleep")


def achieved_rate(resources: Resources) -> float | None:
    """GFLOPS: FLOPs of continual learning by its seconds, in 10^9 a second; None before anything was learned.

    The higher the better only between methods that do the same work: it says how well a machine is used, and a method
    that wastes FLOPs quickly has a high rate too.
    """
    seconds = _learning(resources.seconds)
    return _learning(resources.flops) / seconds / 1e9 if seconds > 0 else None


def _learning(by_phase: Mapping[str, float]) -> float:
    return sum(by_phase.get(phase, 0.0) for phase in _LEARNING)


@dataclass(frozen=True)
class Forecast:
    """What a stream of some length would cost.

    Attributes:
        samples: Its length.
        sleeps: How many sleeps it holds.
        updates: U.
        flops: Wake and sleep together.
        seconds: Wake and sleep together.
    """

    samples: int
    sleeps: int
    updates: float
    flops: float
    seconds: float


def extrapolate(resources: Resources, samples: int, to: int, every: int | None = None) -> Forecast:
    """The costs of a stream of `to` samples, from those of one of `samples`.

    Args:
        resources: What the measured stream cost, base initialisation not counted.
        samples: Length of the measured stream.
        to: Length of the stream to come; it may be shorter.
        every: Samples from one sleep to the next, for a method that sleeps; its updates are those of its sleeps. None
            for a method that rehearses with each sample: all that it costs grows with the stream.

    Example:
        >>> spent = Resources(20, 0, {}, {"wake": 100.0, "sleep": 60.0}, {"wake": 5.0, "sleep": 2.0})
        >>> extrapolate(spent, samples=10, to=40, every=5)
        Forecast(samples=40, sleeps=8, updates=80.0, flops=640.0, seconds=28.0)
        >>> extrapolate(spent, samples=10, to=12, every=5).flops  # the wake of 12 samples, three sleeps
        210.0
    """
    if samples < 1 or to < 1 or (every is not None and every < 1):
        raise BadInput("a stream and a day between two sleeps have at least one sample: give numbers above zero")
    if every is None:
        share = to / samples
        spent = _learning(resources.flops), _learning(resources.seconds)
        return Forecast(to, 0, share * resources.updates, share * spent[0], share * spent[1])
    sleeps = -(-to // every)
    awake, asleep = to / samples, sleeps / -(-samples // every)
    flops, seconds = (
        awake * some.get("wake", 0.0) + asleep * some.get("sleep", 0.0) for some in (resources.flops, resources.seconds)
    )
    return Forecast(to, sleeps, asleep * resources.updates, flops, seconds)
