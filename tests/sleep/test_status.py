"""The status of a sleep, as JSON and back."""

from __future__ import annotations

import json

import pytest

from siesta.errors import BadInput, Busy, Damaged, DiskRefused, SiestaError
from siesta.sleep.status import SleepFailure, SleepStatus


def test_a_status_survives_json_under_the_keys_of_version_0_1() -> None:
    status = SleepStatus("failed", "oh", 7, "2026-01-01T00:00:00+00:00", {"loss": 1.0}, None, SleepFailure("Busy", 5))
    values = json.loads(json.dumps(status.as_dict()))
    assert list(values) == ["state", "words", "pid", "started", "progress", "report", "failure"]
    assert values["words"] == "oh" and values["failure"] == {"kind": "Busy", "exit_code": 5}
    assert SleepStatus.from_dict(values) == status
    del values["failure"]
    assert SleepStatus.from_dict(values).failure is None


@pytest.mark.parametrize("state", ["never", "waiting", "asleep", "paused", "done", "failed", "killed"])
def test_a_sleep_runs_until_it_is_done_has_failed_or_was_killed(state: str) -> None:
    status = SleepStatus.from_dict({"state": state, "words": ""})
    assert status.running == (state in {"waiting", "asleep", "paused"})


@pytest.mark.parametrize("kind", [BadInput, Busy, Damaged, DiskRefused])
def test_a_failure_becomes_the_same_error_in_another_process(kind: type[SiestaError]) -> None:
    failure = SleepFailure.of(kind("why"))
    assert failure == SleepFailure(kind.__name__, kind.exit_code)
    error = failure.error("why")
    assert type(error) is kind and str(error) == "why"


def test_other_exceptions_become_bad_input() -> None:
    assert SleepFailure.of(ValueError("x")) == SleepFailure("ValueError", 1)
    assert SleepFailure.of(KeyboardInterrupt()) == SleepFailure("KeyboardInterrupt", 130)
    assert type(SleepFailure("ValueError", 1).error("x")) is BadInput
