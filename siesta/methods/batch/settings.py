"""Settings that all incremental batch learners have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from siesta.methods.settings import MethodSettings, SelectionName
from siesta.sleep.schedule import Schedule, falling_at, half_cosine

__all__ = ["BatchSettings", "Share", "Shares"]

Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Shares: TypeAlias = Annotated[tuple[Share, ...], Field(strict=False)]
"""Shares of a training's epochs; a list in a config."""


class BatchSettings(MethodSettings):
    """What every batch learner is trained with; a method changes the defaults to those of its paper or public code.

    Attributes:
        epochs: Passes over the step's images and the exemplars.
        first_epochs: The same in the first step; None takes `epochs`.
        lr: Maximum learning rate.
        batch_size: Images in an update step.
        momentum: Of SGD.
        weight_decay: Of SGD.
        first_weight_decay: The same in the first step; None takes `weight_decay`.
        schedule: "steps" falls to a tenth at each of `drops`, "cosine" to zero along half a cosine.
        drops: Shares of the epochs at which the learning rate falls.
        first_drops: The same in the first step; None takes `drops`.
        exemplars: Images that are kept of all classes together, as many of each.
        exemplars_per_class: The most that are kept of each class; None keeps as many as `exemplars` allows.
        selection: How the images that are kept are chosen; a key of `SELECTIONS`.
        augment: How images are changed at random, see `Augment`.
        brightness: Largest relative change of an image's brightness.
        norms: "live" batch norms follow the batches; "frozen" ones keep their first statistics.
    """

    epochs: int = Field(default=170, ge=1)
    first_epochs: int | None = Field(default=None, ge=1)
    lr: float = Field(default=0.1, gt=0)
    batch_size: int = Field(default=128, ge=1, le=65_536)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    weight_decay: float = Field(default=2e-4, ge=0, le=1)
    first_weight_decay: float | None = Field(default=5e-4, ge=0, le=1)
    schedule: Literal["steps", "cosine"] = "steps"
    drops: Shares = (0.5, 0.7, 0.9)
    first_drops: Shares | None = None
    exemplars: int = Field(default=2000, ge=1)
    exemplars_per_class: int | None = Field(default=None, ge=1)
    selection: SelectionName = "herding"
    augment: Literal["none", "crop_flip", "shift_flip", "rand_augment"] = "crop_flip"
    brightness: float = Field(default=0.0, ge=0, lt=1)
    norms: Literal["live", "frozen"] = "live"

    def quota(self, classes: int) -> int:
        """Return how many images of each class are kept when so many classes are known."""
        share = max(self.exemplars // max(classes, 1), 1)
        return share if self.exemplars_per_class is None else min(share, self.exemplars_per_class)

    def epochs_of(self, step: int) -> int:
        """Return the epochs of a step; 0 is the first."""
        return self.first_epochs or self.epochs if step == 0 else self.epochs

    def weight_decay_of(self, step: int) -> float:
        """Return the weight decay of a step."""
        first = self.weight_decay if self.first_weight_decay is None else self.first_weight_decay
        return first if step == 0 else self.weight_decay

    def schedule_of(self, step: int) -> Schedule:
        """Return the schedule of a step."""
        if self.schedule == "cosine":
            return half_cosine
        return falling_at(*(self.first_drops if step == 0 and self.first_drops is not None else self.drops))

    def planned_updates(self, sizes: Sequence[int]) -> int:
        """Return the epochs times a step's images and the exemplars, and what further stages add."""
        seen = total = 0
        for step, size in enumerate(sizes):
            kept = min(seen, self.exemplars)
            total += self.epochs_of(step) * (size + kept)
            total += self.further_updates(step, size + kept, kept)
            seen += size
        return total

    def further_updates(self, step: int, samples: int, kept: int) -> int:
        """Return the updates of a step's stages after the first one.

        Args:
            step: 0 for the first step.
            samples: The step's images and the exemplars.
            kept: The exemplars alone.
        """
        del step, samples, kept
        return 0

    def planned_batch_size(self) -> int:
        """Return the number of images in an update step."""
        return self.batch_size
