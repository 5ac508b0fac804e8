"""The schema of configs: defaults, strict types, and the old name of the learning rate on disk."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from siesta.experiment.config_schema import BaseConfig, ConfigFile, DataConfig, NetworkConfig

SMALLEST: dict[str, Any] = {
    "name": "toy",
    "data": {"dataset": "cub200", "path": "birds"},
    "orders": {"iid": {}},
    "methods": {"ncm": {}},
}


def test_everything_but_name_data_orders_and_methods_has_a_default() -> None:
    file = ConfigFile.model_validate(SMALLEST)
    assert (file.seeds, file.samples, file.base) == ((0,), None, None)
    assert file.network == NetworkConfig()
    assert (file.data.image_size, file.data.held_out) == (224, 0.0)
    for key in SMALLEST:
        with pytest.raises(ValidationError, match="Field required"):
            ConfigFile.model_validate({name: value for name, value in SMALLEST.items() if name != key})


@pytest.mark.parametrize(
    ("section", "values"),
    [
        (DataConfig, {"dataset": "cub200", "path": "birds", "image_size": "224"}),
        (DataConfig, {"dataset": "cub200", "path": "birds", "held_out": 1.0}),
        (DataConfig, {"dataset": "cub200", "path": "birds", "colour": True}),
        (NetworkConfig, {"cut": 5.0}),
        (BaseConfig, {"epochs": 0}),
        (BaseConfig, {"lr": 0.0}),
        (BaseConfig, {"mean_share": float("nan")}),
    ],
)
def test_wrong_types_values_and_keys_are_refused(section: type[DataConfig], values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        section.model_validate(values)


def test_the_learning_rate_is_called_rate_in_hashes() -> None:
    base = BaseConfig(lr=0.1)
    assert base.model_dump()["lr"] == base.model_dump(by_alias=True)["rate"] == 0.1
