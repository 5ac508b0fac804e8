"""The options of a sleep, the same for library, command line, service and background process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Self, TypedDict

from siesta.contracts import Augmentation, Policy, SleepDefaults
from siesta.errors import BadInput
from siesta.policies import DEFAULT_POLICY, make_policy
from siesta.registry import part_name
from siesta.sleep.augment import make_augmentation
from siesta.sleep.budget import Budget
from siesta.sleep.settings import SleepSettings

__all__ = ["SleepFields", "SleepOptions", "SleepPlan"]

_REFERENCE_BATCH = 64  # the batch size that a backbone's learning rate is for
_ANY_NETWORK = SleepDefaults(lr=1.0, layer_decay=1.0, scale=1.0, dropout=0.0)


class SleepFields(TypedDict, total=False):
    """The fields of `SleepOptions` as keyword arguments."""

    updates: int | None
    seconds: float | None
    minutes: float | None
    until: datetime | str | None
    policy: str | Policy
    augment: str | Augmentation | None
    batch_size: int
    lr: float | None
    momentum: float
    weight_decay: float
    layer_decay: float | None
    mean_share: float
    crop: float
    schedule: str
    optimizer: str
    tolerance: float
    judge: str | Path | None
    seed: int | None


@dataclass(frozen=True)
class SleepOptions:
    """What a caller can choose for a sleep: a budget, and how to train.

    Without any budget, a sleep ends when held-out samples stop gaining, see `rehearse_in_rounds`; it too gives the same
    weights for the same seed.

    Attributes:
        updates: Budget in backward passes of single samples. The same seed gives the same weights.
        seconds: Budget in seconds.
        minutes: Budget in minutes.
        until: Budget as a moment: a datetime, or "HH:MM" for the next such time.
        policy: Which samples are rehearsed: a name from `POLICIES`, or an object of your own.
        augment: How pairs of samples are mixed: a name from `AUGMENTATIONS`, a function of your own, or None.
        batch_size: Samples a step.
        lr: Maximum learning rate, that of the head; None takes the backbone's, scaled with the batch size.
        momentum: Of SGD; the first beta of AdamW.
        weight_decay: Of the optimizer.
        layer_decay: Factor on the learning rate for each layer further down; None takes the backbone's.
        mean_share: Weight of the class means in the class vectors after the sleep, see `SleepSettings`; 0 is the
            paper's variant.
        crop: Least share of the area of a feature map, or stored image, that a random crop of it keeps; 1 crops
            nothing, as in the paper.
        schedule: How the learning rate changes over the budget: a name from `SCHEDULES`.
        optimizer: "sgd" or "adamw".
        tolerance: By how much the accuracy on held-out samples may fall beyond chance; if it falls by more, the new
            weights are kept but not used.
        judge: A folder of labelled images, `judge/<label>/*`, that takes the place of held-out samples in this sleep.
        seed: Of every random stream of the sleep; None derives one from the learner's seed and its number of sleeps.

    Example:
        >>> SleepOptions(updates=1000, policy="grasp").to_json()
        '{"updates": 1000, "policy": "grasp"}'
    """

    updates: int | None = None
    seconds: float | None = None
    minutes: float | None = None
    until: datetime | str | None = None
    policy: str | Policy = DEFAULT_POLICY
    augment: str | Augmentation | None = None
    batch_size: int = 64
    lr: float | None = None
    momentum: float = 0.9
    weight_decay: float = 1e-5
    layer_decay: float | None = None
    mean_share: float = 0.5
    crop: float = 0.4
    schedule: str = "one_cycle"
    optimizer: str = "sgd"
    tolerance: float = 0.05
    judge: str | Path | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        make_policy(self.policy)
        make_augmentation(self.augment)
        self.settings(_ANY_NETWORK, seed=0)
        if not -1 <= self.tolerance <= 1:
            raise BadInput(f"tolerance must be in -1..1, not {self.tolerance}")

    @classmethod
    def merged(cls, options: SleepOptions | None, changes: SleepFields) -> SleepOptions:
        """Return the options with some fields replaced; None stands for the defaults."""
        return cls(**changes) if options is None else replace(options, **changes)

    @property
    def has_budget(self) -> bool:
        """Whether any budget is given."""
        return any(value is not None for value in (self.updates, self.seconds, self.minutes, self.until))

    def budget(self) -> Budget:
        """Return the budget, which starts now; raise BadInput if more than one is given."""
        return Budget.of(self.updates, self.seconds, self.minutes, self.until)

    def settings(self, defaults: SleepDefaults, seed: int) -> SleepSettings:
        """Return the training values, with the backbone's and this seed where an option is None."""
        return SleepSettings(
            lr=defaults.lr * self.batch_size / _REFERENCE_BATCH if self.lr is None else self.lr,
            layer_decay=defaults.layer_decay if self.layer_decay is None else self.layer_decay,
            dropout=defaults.dropout,
            batch_size=self.batch_size,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            mean_share=self.mean_share,
            crop=self.crop,
            seed=seed if self.seed is None else self.seed,
            schedule=self.schedule,
            optimizer=self.optimizer,
        )

    def plan(self, defaults: SleepDefaults, seed: int) -> SleepPlan:
        """Return what a sleep of one learner works with; its budget starts now.

        Args:
            defaults: Of the learner's backbone.
            seed: Used when the options have none.
        """
        return SleepPlan(
            budget=self.budget(),
            settings=self.settings(defaults, seed),
            policy=make_policy(self.policy),
            augment=make_augmentation(self.augment),
            tolerance=self.tolerance,
            judge=None if self.judge is None else Path(self.judge),
            names={
                "policy": part_name(self.policy),
                "augment": None if self.augment is None else part_name(self.augment),
            },
        )

    def to_json(self) -> str:
        """Return the options that differ from their defaults, for another process."""
        chosen = {field.name: getattr(self, field.name) for field in fields(self)}
        chosen = {name: value for name, value in chosen.items() if value != getattr(SleepOptions, name)}
        if self.judge is not None:
            chosen["judge"] = str(Path(self.judge).resolve())  # the other process may have another current folder
        for name, value in chosen.items():
            if not isinstance(value, str | int | float):
                raise BadInput(
                    f"a background sleep takes text and numbers, not {name}={value!r}: give policy and augment by "
                    "name (one of your own is named by an entry point of its package) and until as HH:MM, or sleep in "
                    "this process"
                )
        return json.dumps(chosen)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the options that `to_json` wrote."""
        try:
            return cls(**json.loads(text))
        except (TypeError, ValueError) as error:
            raise BadInput(f"'{text}' are not the options of a sleep ({error}): give a JSON object of them") from error


@dataclass(frozen=True)
class SleepPlan:
    """The options of a sleep, resolved for one learner.

    Attributes:
        budget: When the sleep ends.
        settings: How it trains.
        policy: What it rehearses.
        augment: How it mixes pairs of samples; None mixes none.
        tolerance: By how much the accuracy on held-out samples may fall beyond chance.
        judge: Folder of labelled images in place of held-out samples; None for held-out samples.
        names: What the report calls policy and augmentation.
    """

    budget: Budget
    settings: SleepSettings
    policy: Policy
    augment: Augmentation | None
    tolerance: float
    judge: Path | None
    names: Mapping[str, str | None]

    def as_dict(self) -> dict[str, object]:
        """Return the names and the training values, for the report."""
        return {**self.names, **asdict(self.settings)}
