"""Problems that routes may answer with, as OpenAPI describes them."""

from __future__ import annotations

import pytest

from siesta.service.deps import COMMON_PROBLEMS, problems
from siesta.service.schemas import ProblemDetails


def test_a_problem_is_described_by_its_status_and_media_type() -> None:
    (entry,) = problems(404).values()
    assert entry["model"] is ProblemDetails
    assert "does not exist" in entry["description"]
    (schema,) = entry["content"].values()
    assert schema["schema"]["$ref"].endswith(f"/{ProblemDetails.__name__}")
    assert list(entry["content"]) == ["application/problem+json"]


def test_every_route_may_refuse_a_request_for_its_token_or_the_load() -> None:
    assert {401, 403, 429, 503} <= set(COMMON_PROBLEMS)


def test_a_status_without_a_description_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        problems(418)
