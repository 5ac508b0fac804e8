"""The options of a sleep: defaults, checks, and the way to another process."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import Any

import pytest

from siesta import SleepOptions
from siesta.contracts import SleepDefaults
from siesta.errors import BadInput
from siesta.policies import Uniform
from siesta.sleep.augment import mixup
from siesta.sleep.options import SleepFields

DEFAULTS = SleepDefaults(lr=0.2, layer_decay=0.8, scale=10.0, dropout=0.3)


def test_the_keyword_arguments_are_the_fields() -> None:
    assert list(SleepFields.__annotations__) == [field.name for field in fields(SleepOptions)]
    assert SleepFields.__annotations__ == {field.name: _forward(field.type) for field in fields(SleepOptions)}


def _forward(annotation: Any) -> Any:
    from typing import ForwardRef

    return ForwardRef(annotation, module="siesta.sleep.options")


def test_what_is_left_out_comes_from_the_backbone_and_the_learner() -> None:
    settings = SleepOptions(updates=1, batch_size=16).settings(DEFAULTS, seed=7)
    assert (settings.lr, settings.layer_decay, settings.dropout, settings.seed) == (0.2 * 16 / 64, 0.8, 0.3, 7)
    settings = SleepOptions(updates=1, batch_size=16, lr=0.5, layer_decay=0.1, seed=3).settings(DEFAULTS, seed=7)
    assert (settings.lr, settings.layer_decay, settings.seed) == (0.5, 0.1, 3)


def test_the_plan_has_parts_and_their_names() -> None:
    policy = Uniform()
    plan = SleepOptions(updates=5, policy=policy, augment=mixup).plan(DEFAULTS, seed=7)
    assert plan.budget.updates == 5 and plan.policy is policy and plan.augment is mixup
    assert plan.as_dict() == {"policy": "Uniform", "augment": "mixup", **vars(plan.settings)}
    assert SleepOptions(updates=5).plan(DEFAULTS, 7).names == {"policy": "balanced_uniform", "augment": None}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"policy": "best"}, "no policy 'best'"),
        ({"augment": "blur"}, "no augmentation 'blur'"),
        ({"batch_size": 0}, "batch size must be in 1"),
        ({"lr": -1.0}, "learning rate must be finite and above zero, not -1.0"),
        ({"optimizer": "lars"}, "no optimizer 'lars': choose one of sgd, adamw"),
        ({"tolerance": float("nan")}, r"tolerance must be in -1\.\.1, not nan"),
        ({"tolerance": 2}, r"tolerance must be in -1\.\.1, not 2"),
    ],
)
def test_wrong_options_are_refused_at_once(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        SleepOptions(updates=1, **wrong)


def test_at_most_one_budget_is_allowed_when_the_sleep_begins() -> None:
    assert not SleepOptions().has_budget and SleepOptions(minutes=1).has_budget
    assert SleepOptions().budget().is_open
    with pytest.raises(BadInput, match="at most one budget: give one of updates, seconds, minutes or until, or none"):
        SleepOptions(updates=1, seconds=1).budget()
    assert SleepOptions(minutes=2).budget().seconds == 120


def test_fields_replace_those_of_given_options() -> None:
    options = SleepOptions(updates=5, seed=1)
    assert SleepOptions.merged(options, {"seed": 2}) == SleepOptions(updates=5, seed=2)
    assert SleepOptions.merged(None, {"updates": 5}) == SleepOptions(updates=5)


def test_options_survive_the_way_to_another_process() -> None:
    for options in (
        SleepOptions(),
        SleepOptions(until="06:30", policy="grasp", augment="mixup", momentum=0.5, tolerance=1),
        SleepOptions(seconds=0.5, lr=1e-3, layer_decay=0.5, mean_share=0, schedule="cosine", optimizer="adamw", seed=0),
    ):
        assert SleepOptions.from_json(options.to_json()) == options


def test_objects_cannot_go_to_another_process() -> None:
    for options, name in (
        (SleepOptions(updates=1, policy=Uniform()), "policy"),
        (SleepOptions(updates=1, augment=mixup), "augment"),
        (SleepOptions(until=datetime(2030, 1, 1)), "until"),
    ):
        with pytest.raises(BadInput, match=f"takes text and numbers, not {name}="):
            options.to_json()
    for text in ("{", "[1]", '{"rate": 1}'):
        with pytest.raises(BadInput, match="are not the options of a sleep"):
            SleepOptions.from_json(text)
