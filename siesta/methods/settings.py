"""Settings that methods share: strict pydantic models, and the types of settings that are names of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from siesta.errors import BadInput
from siesta.policies import POLICIES
from siesta.selections import SELECTIONS
from siesta.sleep.augment import AUGMENTATIONS

__all__ = ["AugmentationName", "MethodSettings", "OnlineSettings", "PolicyName", "SelectionName"]


def _checked_by(check: Callable[[str], None]) -> AfterValidator:
    """Return a validator of names; pydantic expects a ValueError."""

    def validate(name: str) -> str:
        try:
            check(name)
        except BadInput as error:
            raise ValueError(str(error)) from None
        return name

    return AfterValidator(validate)


PolicyName: TypeAlias = Annotated[str, _checked_by(POLICIES.check)]
AugmentationName: TypeAlias = Annotated[str, _checked_by(AUGMENTATIONS.check)]
SelectionName: TypeAlias = Annotated[str, _checked_by(SELECTIONS.check)]
"""Settings of these types are names of parts, which are refused where there is no such part."""


class MethodSettings(BaseModel):
    """Immutable settings of a method; unknown keys are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def planned_updates(self, sizes: Sequence[int]) -> int:
        """Return how many updates steps of these sizes take at most; fewer while the memory is small. Here none."""
        del sizes
        return 0

    def planned_batch_size(self) -> int:
        """Return the number of samples in a training step."""
        return 1


class OnlineSettings(MethodSettings):
    """Settings of methods that take an SGD step for each new sample; the defaults are the paper's.

    Attributes:
        lr: Learning rate of the output layer.
        momentum: Of SGD.
        weight_decay: Of SGD.
        layer_decay: Factor on the learning rate for each layer below the output; None takes the backbone's.
    """

    lr: float = Field(serialization_alias="rate", default=0.1, gt=0)
    momentum: float = Field(default=0.9, ge=0, le=1)
    weight_decay: float = Field(default=1e-5, ge=0, le=1)
    layer_decay: float | None = Field(default=None, ge=0, le=1)

    def planned_updates(self, sizes: Sequence[int]) -> int:
        """Return one step's updates for each sample."""
        return sum(sizes) * self.planned_batch_size()
