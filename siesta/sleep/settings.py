"""The training values of a sleep once nothing is left to a default."""

from __future__ import annotations

import math
from dataclasses import dataclass

from siesta.errors import BadInput
from siesta.sleep.schedule import make_schedule

__all__ = ["OPTIMIZER_NAMES", "SleepSettings", "check_seed"]

OPTIMIZER_NAMES = ("sgd", "adamw")
_LARGEST_BATCH = 65_536


def check_seed(seed: int) -> None:
    """Raise BadInput for a seed that the random generators do not accept."""
    if not 0 <= seed < 2**63:
        raise BadInput(f"seed must be in 0..2^63 - 1, not {seed}")


@dataclass(frozen=True)
class SleepSettings:
    """The values that one training run uses.

    `SleepOptions.settings` makes them from what a caller chose and a backbone's `SleepDefaults`.

    Attributes:
        lr: Maximum learning rate, that of the head.
        layer_decay: Factor on the learning rate for each layer further down.
        dropout: Share of z that is dropped between top and head.
        batch_size: Samples a step.
        momentum: Of SGD; the first beta of AdamW.
        weight_decay: Of the optimizer.
        mean_share: What a class vector is after the sleep: 0 the trained vector, as in the paper; 1 the mean of its
            class's z under the new top; values between blend the two directions. The vector of a class that arrives
            awake is a mean of z, which purely trained vectors are not comparable with: old classes would lose to it.
        crop: Least share of the area of a feature map, or stored image, that a random crop of it keeps; 1 crops
            nothing, as in the paper.
        seed: Of every random stream.
        schedule: A name from `SCHEDULES`.
        optimizer: A name from `OPTIMIZERS`.
    """

    lr: float
    layer_decay: float
    dropout: float
    batch_size: int = 64
    momentum: float = 0.9
    weight_decay: float = 1e-5
    mean_share: float = 0.5
    crop: float = 1.0
    seed: int = 0
    schedule: str = "one_cycle"
    optimizer: str = "sgd"

    def __post_init__(self) -> None:
        check_seed(self.seed)
        make_schedule(self.schedule)
        if self.optimizer not in OPTIMIZER_NAMES:
            raise BadInput(f"there is no optimizer '{self.optimizer}': choose one of {', '.join(OPTIMIZER_NAMES)}")
        if not 1 <= self.batch_size <= _LARGEST_BATCH:
            raise BadInput(f"batch size must be in 1..{_LARGEST_BATCH}, not {self.batch_size}")
        if not (self.lr > 0 and math.isfinite(self.lr)):
            raise BadInput(f"learning rate must be finite and above zero, not {self.lr}")
        _check_range("layer decay", self.layer_decay, 1)
        _check_range("momentum", self.momentum, 1 if self.optimizer == "sgd" else 0.999)
        _check_range("weight decay", self.weight_decay, 1)
        _check_range("dropout", self.dropout, 0.99)
        _check_range("mean share", self.mean_share, 1)
        if not 0 < self.crop <= 1:
            raise BadInput(f"crop must be above 0 and at most 1, not {self.crop}")


def _check_range(name: str, value: float, high: float) -> None:
    if not 0 <= value <= high:
        raise BadInput(f"{name} must be in 0..{high}, not {value}")
