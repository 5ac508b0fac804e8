"""The report of a sleep: what it cost and what it changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self

from siesta.sleep.binomial import interval_of, percent_with_interval
from siesta.sleep.round_limits import FEWEST_HELD_OUT

__all__ = ["Ending", "SleepReport"]

Ending = Literal["budget", "interrupted", "no_gain", "ceiling", "passes"]
"""Why a sleep ended: its budget was spent; it was ended early; its last round gained too little; it reached its
ceiling; or it made a fixed number of passes, because there were too few held-out samples to judge rounds by."""


@dataclass(frozen=True)
class SleepReport:
    """The cost and the effect of one sleep.

    Attributes:
        generation: Number of the new weights.
        updates: Backward passes of single samples; a mixed pair is one.
        seconds: Wall time from planning to the last step.
        samples: Number of different samples that were rehearsed.
        embedded: Number of samples that were embedded for planning.
        classes: Number of classes in the head.
        new_classes: How many of them took part in a sleep for the first time.
        loss_before: Mean training loss over the first tenth of the batches.
        loss_after: Mean training loss over the last tenth of the batches.
        top_change: |new - old| / |old| over all weights of the top.
        interrupted: True when the sleep was ended early.
        held_out: Number of held-out samples (never rehearsed) that the accuracies were measured on; others decided.
        accuracy_before: Accuracy on the held-out samples before the sleep; None where there are none.
        accuracy_after: Accuracy on the held-out samples with the new weights.
        confidence: State of the `Confidence` of the new weights.
        used: False when the accuracy fell by more than the tolerance: the new weights are kept but not in use.
        settings: The values that the sleep ran with.
        rounds: Number of rounds; 1 if the sleep had a budget.
        ended: Why the sleep ended.
        optimistic: True when the held-out samples that the accuracies were measured on also decided when it ended, or
            whether its weights are used.
        judge: Name of the folder whose images took the place of held-out samples; None for held-out samples.
    """

    generation: int
    updates: int
    seconds: float
    samples: int
    embedded: int
    classes: int
    new_classes: int
    loss_before: float
    loss_after: float
    top_change: float
    interrupted: bool
    held_out: int
    accuracy_before: float | None
    accuracy_after: float | None
    confidence: Mapping[str, Any]
    used: bool
    settings: Mapping[str, Any]
    rounds: int = 1
    ended: Ending = "budget"
    optimistic: bool = False
    judge: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON; the learning rate is called "rate" among its settings there."""
        settings = {"rate" if name == "lr" else name: value for name, value in self.settings.items()}
        return {**asdict(self), "settings": settings, "interval_after": self.interval_after}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the report that `as_dict` gave; raise `TypeError` or `KeyError` if it is not one."""
        known = {field.name: values[field.name] for field in fields(cls) if field.name in values}
        known["settings"] = {("lr" if name == "rate" else name): value for name, value in known["settings"].items()}
        return cls(**known)

    @property
    def interval_after(self) -> tuple[float, float] | None:
        """The 95 % interval of the accuracy with the new weights; None without held-out samples."""
        return interval_of(self.accuracy_after, self.held_out)

    def summary(self) -> str:
        """Return the report as a few sentences."""
        woke = "Woke up early" if self.interrupted else "Slept"
        text = (
            f"{woke}: {self.updates:,} updates in {self.seconds:.1f} s over {self.samples:,} samples of "
            f"{self.classes:,} classes ({self.new_classes:,} new). Loss {self.loss_before:.3f} -> "
            f"{self.loss_after:.3f}, top changed by {100 * self.top_change:.2f} %{self.held_out_summary()}. "
            f"{self.ending_summary()}"
        )
        if self.used:
            return f"{text}Generation {self.generation} is in use."
        return f"{text}That is worse than tolerated: generation {self.generation} is kept but not used."

    def held_out_summary(self) -> str:
        """Return how held-out accuracy changed, as the end of a sentence; empty without held-out samples."""
        if self.accuracy_before is None or self.accuracy_after is None:
            return ""
        change = f"{100 * self.accuracy_before:.1f} % -> {percent_with_interval(self.accuracy_after, self.held_out)}"
        optimistic = ", optimistic because they also decided about these weights" if self.optimistic else ""
        what = "samples it never rehearses" if self.judge is None else f"images of the folder '{self.judge}'"
        return f"; on {self.held_out:,} {what} {change}{optimistic}"

    def ending_summary(self) -> str:
        """Return why a sleep without a budget ended, as a sentence with a space after it; else an empty text."""
        rounds = f"{self.rounds} round{'s' if self.rounds > 1 else ''}"
        match self.ended:
            case "no_gain":
                return f"It ended after {rounds}, when held-out samples stopped gaining. "
            case "ceiling":
                return f"It ended after {rounds}, at its ceiling, while held-out samples still gained. "
            case "passes":
                return f"It made a fixed number of passes: fewer than {FEWEST_HELD_OUT} samples are held out. "
        return ""
