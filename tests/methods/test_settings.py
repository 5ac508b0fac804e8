"""Settings that methods share: strict validation, old keys on disk, planned updates."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from siesta.methods.settings import MethodSettings, OnlineSettings


def test_online_methods_plan_a_step_for_each_sample() -> None:
    assert OnlineSettings().planned_updates([3, 4]) == 7
    assert OnlineSettings().planned_batch_size() == 1


def test_methods_without_training_plan_no_updates() -> None:
    assert MethodSettings().planned_updates([3, 4]) == 0


def test_the_learning_rate_keeps_its_key_in_files() -> None:
    assert OnlineSettings(lr=0.5).model_dump(by_alias=True)["rate"] == 0.5


@pytest.mark.parametrize("wrong", [{"lr": 0.0}, {"lr": float("nan")}, {"lr": "0.1"}, {"momentum": 2.0}, {"decay": 0.1}])
def test_values_out_of_range_of_a_wrong_type_or_unknown_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        OnlineSettings.model_validate(wrong)


def test_settings_are_immutable() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        OnlineSettings().lr = 1.0
