"""Progress of a sleep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["OnProgress", "Progress"]


@dataclass(frozen=True)
class Progress:
    """The progress of a sleep after a batch.

    Attributes:
        updates: Backward passes of single samples so far.
        fraction: Share of the budget that is spent, 0 to 1.
        loss: Training loss of the batch.
        lr: Learning rate of the last layer.
        updates_per_second: Speed so far.
        seconds_left: Time left; for an update budget an estimate, without a budget the estimated time to the ceiling.
        round: Number of the round, from 1, in a sleep without a budget; 0 in a sleep with a budget.
    """

    updates: int
    fraction: float
    loss: float
    lr: float
    updates_per_second: float
    seconds_left: float
    round: int = 0

    def as_dict(self) -> dict[str, float]:
        """Return plain values for JSON, with the learning rate under its published key "rate"."""
        return {("rate" if name == "lr" else name): value for name, value in vars(self).items()}


OnProgress = Callable[[Progress], bool | None]
"""A callback after each batch of a sleep; returning True ends the sleep early."""
