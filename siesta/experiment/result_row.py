"""The schema of a result row, used by writer and reader: the fields that every row has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
)

from siesta.contracts import Resources
from siesta.errors import BadInput, Damaged
from siesta.experiment.run_folder import Row, remedy

__all__ = ["SCHEMA", "validate_new_row", "validate_resources", "validate_row"]

SCHEMA = 1
_Percent = Annotated[float, Field(ge=0, le=100)]
_Text = Annotated[str, Field(min_length=1)]


class _StrictModel(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Order(_StrictModel):
    name: _Text
    hash: str


class _Data(_StrictModel):
    dataset: _Text
    image_size: PositiveInt
    options: dict[str, JsonValue] = {}
    held_out: float = 0.0


class _Phases(_StrictModel):
    wake: NonNegativeFloat
    sleep: NonNegativeFloat
    inference: NonNegativeFloat


class _Bytes(_StrictModel):
    """The parts of M; a method may add others."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, NonNegativeInt]

    codes: NonNegativeInt
    images: NonNegativeInt
    network: NonNegativeInt
    copies: NonNegativeInt
    codebooks: NonNegativeInt
    means: NonNegativeInt


class _Costs(_StrictModel):
    """The fields of a row that a method reports as its `contracts.Resources`."""

    updates: NonNegativeInt
    parameters: PositiveInt
    bytes: _Bytes
    flops: _Phases
    seconds: _Phases


class _ResultRow(_Costs):
    """A row; rows of the first versions have neither `data` nor `command`."""

    experiment: _Text
    run: _Text
    config: _Text
    command: _Text | None = None
    data: _Data | None = None
    method: _Text
    kind: _Text
    settings: dict[str, JsonValue]
    seed: NonNegativeInt
    order: _Order
    step: NonNegativeInt
    phase: Literal["before", "after"]
    n: PositiveInt
    classes: PositiveInt
    top1: _Percent
    top5: _Percent
    commit: _Text | None
    date: _Text
    machine: dict[str, JsonValue]


def validate_resources(method: str, resources: object) -> Resources:
    """Return what `resources()` of a method returned; raise `BadInput` if it cannot become part of a row."""
    if not isinstance(resources, Resources):
        raise BadInput(
            f"method '{method}' returns {type(resources).__name__} as its resources: return contracts.Resources"
        )
    values = {name: dict(value) if isinstance(value, Mapping) else value for name, value in vars(resources).items()}
    try:
        _Costs.model_validate(values)
    except ValidationError as error:
        raise BadInput(
            f"method '{method}' reports invalid resources ({_reason(error)}): correct its resources()"
        ) from None
    return resources


def validate_new_row(row: Row) -> None:
    """Raise `BadInput` if a row that is about to be written would be refused when it is read."""
    try:
        _ResultRow.model_validate(row)
    except ValidationError as error:
        raise BadInput(
            f"method '{row['method']}' gives an invalid result row ({_reason(error)}): correct that value"
        ) from None


def validate_row(file: Path, number: int, row: Row) -> None:
    """Raise `Damaged` if a line of `rows.jsonl` is not a valid result row."""
    schema = row.get("schema") if isinstance(row, dict) else None
    if schema is None:
        raise Damaged(f"line {number} of {file} is not a result row: {remedy(file.parent)}")
    if schema != SCHEMA:
        raise Damaged(
            f"{file} has rows of schema {schema}, this version reads {SCHEMA}: install the version of siesta that "
            "wrote them"
        )
    try:
        _ResultRow.model_validate(row)
    except ValidationError as error:
        raise Damaged(
            f"line {number} of {file} is not a result row ({_reason(error)}): {remedy(file.parent)}"
        ) from error


def _reason(error: ValidationError) -> str:
    """Return the first field that is wrong, and why."""
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    return f"{key}: {first['msg'][0].lower()}{first['msg'][1:]}"
