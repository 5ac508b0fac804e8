"""What a row of results says: the fields that every reader may rely on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveInt, ValidationError

from siesta.errors import Damaged
from siesta.experiment.run_folder import Row, remedy

__all__ = ["SCHEMA", "check_row"]

SCHEMA = 1
_Percent = Annotated[float, Field(ge=0, le=100)]
_Text = Annotated[str, Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Order(_Strict):
    name: _Text
    hash: str


class _Data(_Strict):
    dataset: _Text
    image_size: PositiveInt
    options: dict[str, Any] = {}
    held_out: float = 0.0


class _Phases(_Strict):
    wake: NonNegativeFloat
    sleep: NonNegativeFloat
    inference: NonNegativeFloat


class _Row(_Strict):
    """Rows of the first versions have neither data nor command."""

    experiment: _Text
    run: _Text
    config: _Text
    command: _Text | None = None
    data: _Data | None = None
    method: _Text
    kind: _Text
    settings: dict[str, Any]
    seed: NonNegativeInt
    order: _Order
    step: NonNegativeInt
    phase: Literal["before", "after"]
    n: PositiveInt
    classes: PositiveInt
    top1: _Percent
    top5: _Percent
    updates: NonNegativeInt
    parameters: PositiveInt
    bytes: dict[str, NonNegativeInt]
    flops: _Phases
    seconds: _Phases
    commit: _Text | None
    date: _Text
    machine: dict[str, Any]


def check_row(file: Path, number: int, row: Row) -> None:
    """Refuses a line that is no row of results, and says what is wrong with it."""
    schema = row.get("schema") if isinstance(row, dict) else None
    if schema is None:
        raise Damaged(f"line {number} of {file} is no result row: {remedy(file.parent)}")
    if schema != SCHEMA:
        raise Damaged(f"{file} has rows of schema {schema}, this version reads {SCHEMA}: install the siesta it is from")
    try:
        _Row.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        where, why = ".".join(map(str, first["loc"])), first["msg"][0].lower() + first["msg"][1:]
        raise Damaged(f"line {number} of {file} is no result row ({where}: {why}): {remedy(file.parent)}") from error
