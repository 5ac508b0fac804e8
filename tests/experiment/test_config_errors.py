"""Each validation error becomes one sentence that names the key, the value and what is expected."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from siesta.experiment.config_errors import describe_error


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    count: Annotated[int, Field(ge=1, lt=9)] = 1
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    mode: Literal["fast", "slow"] = "fast"
    name: str = ""
    flag: bool = False

    @field_validator("name")
    @classmethod
    def _no_spaces(cls, name: str) -> str:
        if " " in name:
            raise ValueError(f"'{name}' has spaces")
        return name


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    inner: Inner


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "the key 'inner' is missing"),
        ({"inner": 3}, "inner must be a table of keys, not 3"),
        ({"inner": {"count": 0}}, "inner.count must be 1 or more, not 0"),
        ({"inner": {"count": 9}}, "inner.count must be less than 9, not 9"),
        ({"inner": {"count": 1.5}}, "inner.count must be a whole number, not 1.5"),
        ({"inner": {"share": 0.0}}, "inner.share must be more than 0, not 0.0"),
        ({"inner": {"share": 2.0}}, "inner.share must be 1 or less, not 2.0"),
        ({"inner": {"share": float("inf")}}, "inner.share must be a finite number, not inf"),
        ({"inner": {"mode": "best"}}, "inner.mode must be 'fast' or 'slow', not 'best'"),
        ({"inner": {"flag": 1}}, "inner.flag must be true or false, not 1"),
        ({"inner": {"name": "a b"}}, "inner.name: 'a b' has spaces"),
        ({"inner": {"image_sise": 1}}, "there is no key 'inner.image_sise': did you mean 'image_size'?"),
        ({"inner": {"zzzzzz": 1}}, "there is no key 'inner.zzzzzz': remove it"),
    ],
)
def test_the_sentence_on_an_error(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(values)
    assert describe_error(caught.value) == sentence
    prefixed = sentence.replace("inner", "methods.x.inner", 1)
    assert describe_error(caught.value, "methods.x.") == prefixed
