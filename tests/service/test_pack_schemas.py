"""Requests to a sleeper have the options of a sleep."""

from __future__ import annotations

from dataclasses import fields

from siesta.service.pack_schemas import PackSleepRequest
from siesta.sleep.options import SleepOptions


def test_every_option_that_can_be_sent_has_the_default_of_a_sleep() -> None:
    options = {field.name: field.default for field in fields(SleepOptions)}
    sent = {name: field.default for name, field in PackSleepRequest.model_fields.items()}
    assert sent == {name: options[name] for name in sent}
    assert options.keys() - sent.keys() == {"minutes", "until", "judge"}
