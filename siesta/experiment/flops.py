"""Achieved GFLOPS of a method, and an extrapolation of its costs to streams of another length.

The extrapolation assumes that the cost per sample is constant (no larger head, no slower disk); that each sleep takes
the same m updates however much is stored (true of policies that only look at ids and classes; the cost of a policy that
embeds the whole memory grows with it); that the method sleeps after a fixed number of samples and once more at the end;
and that seconds are proportional to FLOPs. Base initialisation and inference are excluded, as in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from siesta.contracts import Resources
from siesta.errors import BadInput

__all__ = ["Forecast", "achieved_gflops", "extrapolate"]

_LEARNING_PHASES = ("wake", "sleep")


def achieved_gflops(resources: Resources) -> float | None:
    """Return FLOPs of continual learning per second, in 10^9; None if no time was spent.

    Higher is better only between methods that do the same work: the figure says how well the machine is used, and a
    method that wastes FLOPs quickly has a high one too.
    """
    seconds = _learning_total(resources.seconds)
    return _learning_total(resources.flops) / seconds / 1e9 if seconds > 0 else None


def _learning_total(by_phase: Mapping[str, float]) -> float:
    return sum(by_phase.get(phase, 0.0) for phase in _LEARNING_PHASES)


@dataclass(frozen=True)
class Forecast:
    """Costs of a stream of a given length.

    Attributes:
        samples: Length of the stream.
        sleeps: Number of sleeps.
        updates: U.
        flops: FLOPs of wake and sleep together.
        seconds: Seconds of wake and sleep together.
    """

    samples: int
    sleeps: int
    updates: float
    flops: float
    seconds: float


def extrapolate(resources: Resources, samples: int, to: int, every: int | None = None) -> Forecast:
    """Return the costs of a stream of `to` samples, given those of a stream of `samples`.

    Args:
        resources: Costs of the measured stream, without base initialisation.
        samples: Length of the measured stream.
        to: Length of the other stream; it may be shorter.
        every: Samples between two sleeps, for a method that sleeps; all its updates are taken to be made asleep. None
            for a method that rehearses with each sample: all its costs grow with the stream.

    Example:
        >>> spent = Resources(20, 0, {}, {"wake": 100.0, "sleep": 60.0}, {"wake": 5.0, "sleep": 2.0})
        >>> extrapolate(spent, samples=10, to=40, every=5)
        Forecast(samples=40, sleeps=8, updates=80.0, flops=640.0, seconds=28.0)
        >>> extrapolate(spent, samples=10, to=12, every=5).flops  # the wake of 12 samples, three sleeps
        210.0
    """
    if samples < 1 or to < 1 or (every is not None and every < 1):
        raise BadInput(
            f"lengths of streams and the samples between two sleeps must be at least one sample, "
            f"not {samples}, {to} and {every}: give numbers above zero"
        )
    if every is None:
        share = to / samples
        flops = share * _learning_total(resources.flops)
        return Forecast(to, 0, share * resources.updates, flops, share * _learning_total(resources.seconds))
    sleeps = -(-to // every)
    wake_factor = to / samples
    sleep_factor = sleeps / -(-samples // every)

    def scaled(by_phase: Mapping[str, float]) -> float:
        return wake_factor * by_phase.get("wake", 0.0) + sleep_factor * by_phase.get("sleep", 0.0)

    updates = sleep_factor * resources.updates
    return Forecast(to, sleeps, updates, scaled(resources.flops), scaled(resources.seconds))
