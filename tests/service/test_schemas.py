"""JSON bodies of the HTTP API."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from siesta.service.schemas import LabelRequest, MergeRequest, SleepProgressResponse, SleepReportResponse, SleepRequest


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (LabelRequest, {"label": 5}),
        (LabelRequest, {"label": ""}),
        (LabelRequest, {"label": "robin", "colour": "red"}),
        (MergeRequest, {"into": "2"}),
        (MergeRequest, {"into": 2**53}),
        (SleepRequest, {"seconds": True}),
        (SleepRequest, {"seconds": float("inf")}),
        (SleepRequest, {"until": "24:00"}),
    ],
)
def test_a_request_is_neither_converted_nor_completed(model: type[BaseModel], body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(body)


def test_a_number_that_json_cannot_represent_becomes_null() -> None:
    progress = {"updates": 1, "fraction": 0.5, "rate": 0.1, "updates_per_second": float("inf")}
    response = SleepProgressResponse.model_validate({**progress, "loss": float("nan"), "seconds_left": 3.0})
    assert (response.loss, response.updates_per_second, response.seconds_left) == (None, None, 3.0)


def test_a_stored_report_may_lack_entries() -> None:
    response = SleepReportResponse.from_stored({"updates": 64, "settings": {"policy": "uniform"}}, made="today")
    assert (response.updates, response.policy, response.made) == (64, "uniform", "today")
    assert (response.generation, response.loss_before, response.accuracy_after) == (0, None, None)
    assert response.used and not response.interrupted
    assert SleepReportResponse.from_stored({}).policy is None
