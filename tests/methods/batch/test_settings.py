"""Settings of batch learners: what a step uses, and the planned updates."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from siesta.methods import METHODS
from siesta.methods.batch.settings import BatchSettings

COLLECTING = [name for name, spec in METHODS.own.items() if spec.collects]


def test_the_first_step_may_differ() -> None:
    settings = BatchSettings(epochs=4, first_epochs=6, weight_decay=0.1, first_weight_decay=0.2, first_drops=(0.9,))
    assert [settings.epochs_of(step) for step in range(3)] == [6, 4, 4]
    assert [settings.weight_decay_of(step) for step in range(3)] == [0.2, 0.1, 0.1]
    assert settings.schedule_of(0)(0.6, 0.1) == 1.0
    assert settings.schedule_of(1)(0.6, 0.1) == pytest.approx(0.1)
    plain = BatchSettings(epochs=4, weight_decay=0.1, first_weight_decay=None)
    assert (plain.epochs_of(0), plain.weight_decay_of(0)) == (4, 0.1)
    assert plain.schedule_of(0)(0.6, 0.1) == pytest.approx(0.1)


def test_a_cosine_falls_to_zero() -> None:
    schedule = BatchSettings(schedule="cosine").schedule_of(0)
    assert [schedule(share, 0.1) for share in (0.0, 0.25, 1.0)] == [1.0, (1 + math.cos(math.pi / 4)) / 2, 0.0]


def test_the_quota_is_of_all_classes_or_of_each() -> None:
    assert [BatchSettings(exemplars=10).quota(classes) for classes in (1, 3, 100)] == [10, 3, 1]
    limited = BatchSettings(exemplars=10, exemplars_per_class=4)
    assert [limited.quota(classes) for classes in (1, 2, 3)] == [4, 4, 3]


def test_drops_are_a_list_of_shares() -> None:
    assert METHODS["wa"].settings({"drops": [0.2, 1.0]}).model_dump()["drops"] == (0.2, 1.0)
    with pytest.raises(ValidationError, match="less than or equal to 1"):
        METHODS["wa"].settings({"drops": [60.0]})


def test_planned_updates_of_a_stream() -> None:
    settings = BatchSettings(epochs=10, first_epochs=20, exemplars=100)
    assert settings.planned_updates([80, 50, 50]) == 20 * 80 + 10 * (50 + 80) + 10 * (50 + 100)


@pytest.mark.parametrize("name", COLLECTING)
def test_further_stages_are_planned_from_the_second_step_on(name: str) -> None:
    settings = METHODS[name].settings({"epochs": 1, "exemplars": 20})
    assert isinstance(settings, BatchSettings)
    tuned_at_once = name == "simple_der"
    assert (settings.further_updates(0, 100, 0) > 0) == tuned_at_once
    assert settings.planned_batch_size() == settings.batch_size
    assert settings.planned_updates([100]) == settings.epochs_of(0) * 100 + settings.further_updates(0, 100, 0)
