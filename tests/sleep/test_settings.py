"""The checks on the training values of a sleep."""

from __future__ import annotations

import math

import pytest

from siesta.errors import BadInput
from siesta.sleep.optimizers import OPTIMIZERS
from siesta.sleep.settings import OPTIMIZER_NAMES, SleepSettings, check_seed


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"batch_size": 0}, r"batch size must be in 1\.\.65536, not 0"),
        ({"lr": 0.0}, "learning rate must be finite and above zero, not 0.0"),
        ({"lr": math.inf}, "learning rate must be finite and above zero, not inf"),
        ({"layer_decay": math.nan}, r"layer decay must be in 0\.\.1, not nan"),
        ({"momentum": -1}, r"momentum must be in 0\.\.1, not -1"),
        ({"momentum": 1, "optimizer": "adamw"}, r"momentum must be in 0\.\.0\.999, not 1"),
        ({"mean_share": 1.5}, r"mean share must be in 0\.\.1, not 1\.5"),
        ({"seed": -1}, "seed must be in 0"),
        ({"schedule": "stairs"}, "no schedule 'stairs'"),
        ({"optimizer": "lion"}, "no optimizer 'lion': choose one of sgd, adamw"),
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        SleepSettings(**{"lr": 0.1, "layer_decay": 0.9, "dropout": 0.1, **wrong})  # type: ignore[arg-type]


def test_every_optimizer_has_a_name() -> None:
    assert tuple(OPTIMIZERS) == OPTIMIZER_NAMES


def test_seeds_are_what_the_generators_accept() -> None:
    check_seed(0)
    check_seed(2**63 - 1)
    for wrong in (-1, 2**63):
        with pytest.raises(BadInput, match=f"seed must be in .*, not {wrong}"):
            check_seed(wrong)
