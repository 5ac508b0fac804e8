"""Bodies of the requests and responses of a sleeper."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from siesta.policies import DEFAULT_POLICY

__all__ = ["BottomResponse", "PackResponse", "PackSleepRequest"]


class PackSleepRequest(BaseModel):
    """How to sleep on a pack; a budget that ends at a time of day is sent as the seconds until then.

    The other fields and their defaults are those of `SleepOptions`.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    updates: Annotated[int, Field(ge=1, le=10**12)] | SkipJsonSchema[None] = None
    seconds: Annotated[float, Field(gt=0, le=10**7, allow_inf_nan=False)] | SkipJsonSchema[None] = None
    policy: str = DEFAULT_POLICY
    augment: str | SkipJsonSchema[None] = None
    batch_size: Annotated[int, Field(ge=1, le=10**6)] = 64
    lr: float | SkipJsonSchema[None] = None
    momentum: float = 0.9
    weight_decay: float = 1e-5
    layer_decay: float | SkipJsonSchema[None] = None
    mean_share: float = 0.5
    crop: float = 0.4
    schedule: str = "one_cycle"
    optimizer: str = "sgd"
    tolerance: float = 0.05
    seed: int | SkipJsonSchema[None] = None


class PackResponse(BaseModel):
    """Id that a sleeper has given to a pack."""

    id: str


class BottomResponse(BaseModel):
    """Whether a sleeper has a bottom."""

    known: bool
