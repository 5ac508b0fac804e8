"""What a method can be told: pydantic models that know all their keys."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["MethodSettings", "OnlineSettings"]


class MethodSettings(BaseModel):
    """Settings of a method: a key that it does not have is an error, and none changes while it runs."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def planned_updates(self, sizes: Sequence[int]) -> int:
        """Updates that steps of these sizes will take, a few fewer while the memory is still small; here none."""
        del sizes
        return 0

    def planned_batch(self) -> int:
        """Samples of a training step."""
        return 1


class OnlineSettings(MethodSettings):
    """What methods share that take an SGD step for each new sample; the paper's values.

    `rate` is that of the output; each layer below has `layer_decay` times that of the one above it, by default what
    suits the backbone.
    """

    rate: float = Field(default=0.1, gt=0)
    momentum: float = Field(default=0.9, ge=0, le=1)
    weight_decay: float = Field(default=1e-5, ge=0, le=1)
    layer_decay: float | None = Field(default=None, ge=0, le=1)

    def planned_updates(self, sizes: Sequence[int]) -> int:
        """A step for each sample."""
        return sum(sizes) * self.planned_batch()
