"""Error responses: every error has the form of RFC 9457 and one sentence to show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from siesta.service.problems import PROBLEM_JSON, Problem, problem_response
from tests.service.conftest import Send
from tests.service.server_process import make_image

JSON = {"content-type": "application/json"}
INTEGER = "should be a valid integer"

ERRORS: list[tuple[str, str, dict[str, Any], int]] = [
    ("GET", "/v1/nothing", {}, 404),
    ("PUT", "/v1/classes", {}, 405),
    ("GET", "/static/none.js", {}, 404),
    ("GET", "/static/../app.py", {}, 404),
    ("GET", "/v1/classes/0", {}, 405),
    ("DELETE", "/v1/classes/0", {}, 422),
    ("DELETE", f"/v1/samples/{2**63}", {}, 422),
    ("DELETE", "/v1/samples/one", {}, 422),
    ("POST", "/v1/learn", {}, 422),
    ("POST", "/v1/learn", {"data": {"label": "a"}}, 422),
    ("POST", "/v1/learn", {"data": {"image": "as text", "label": "a"}}, 422),
    ("POST", "/v1/learn/", {}, 404),
    ("POST", "/v1/learn", {"content": b"garbage", "headers": {"content-type": "multipart/form-data"}}, 400),
    ("POST", "/v1/sleep", {"content": b"{", "headers": JSON}, 422),
    ("POST", "/v1/sleep", {"json": {"seconds": 1, "updates": 1}}, 422),
    ("POST", "/v1/sleep", {"json": {"seconds": -1}}, 422),
    ("POST", "/v1/sleep", {"json": {"until": "25:00"}}, 422),
    ("POST", "/v1/sleep", {"json": {"seconds": 1, "policy": "none such"}}, 422),
    ("POST", "/v1/sleep", {"json": {"seconds": 1, "speed": "high"}}, 422),
    ("DELETE", "/v1/sleep", {}, 409),
    ("POST", "/v1/generations/77/use", {}, 404),
    ("PATCH", "/v1/classes/1", {"json": {"label": ["a"]}}, 422),
]

DETAILS: list[tuple[str, dict[str, Any], int, str]] = [
    ("/v1/nothing", {}, 404, "there is nothing at this address"),
    ("/v1/classes", {}, 405, "this method is not allowed at this address"),
    ("/v1/sleep", {"content": b"{", "headers": JSON}, 422, "the body is not JSON: expecting property name"),
    ("/v1/sleep", {"content": b'{"seconds": 1}'}, 422, "send the body as JSON with content-type: application/json"),
    ("/v1/sleep", {}, 422, "send the body as JSON with content-type: application/json"),
    ("/v1/sleep", {"json": [1]}, 422, "send a JSON object"),
    ("/v1/sleep", {"content": b"\xff", "headers": JSON}, 400, "the body cannot be parsed: check that it is UTF-8"),
    ("/v1/sleep", {"json": {"seconds": "60"}}, 422, "seconds should be a valid number"),
    ("/v1/sleep", {"json": {"seconds": True}}, 422, "seconds should be a valid number"),
    ("/v1/sleep", {"json": {"seconds": -1}}, 422, "seconds should be greater than 0"),
    ("/v1/sleep", {"json": {"updates": True}}, 422, f"updates {INTEGER}"),
    ("/v1/sleep", {"json": {"until": "25:00"}}, 422, "until should be a time of day, such as 06:30"),
    ("/v1/sleep", {"json": {"speed": 1}}, 422, "speed is not a known field: remove it"),
    ("/v1/classes/1/merge", {"json": {"into": True}}, 422, f"into {INTEGER}"),
    ("/v1/classes/1/merge", {"json": {"into": "2"}}, 422, f"into {INTEGER}"),
    ("/v1/classes/1/merge", {"json": {}}, 422, "into is missing"),
    ("/v1/classes/one/merge", {"json": {"into": 2}}, 422, f"class_id {INTEGER}"),
    ("/v1/learn", {}, 422, "image is missing; label is missing"),
    ("/v1/learn", {"data": {"image": "as text", "label": "a"}}, 422, "image 1: send it as a file"),
    ("/v1/predict?top=x", {"files": {"image": make_image("red")}}, 422, f"top {INTEGER}"),
]


def test_every_error_is_a_problem_that_does_not_reveal_the_folder(send: Send, learner_path: Path) -> None:
    for method, path, request, status in ERRORS:
        response = send(method, path, **request)
        assert response.status_code == status, (method, path, response.text)
        assert response.headers["content-type"] == PROBLEM_JSON
        problem = response.json()
        assert problem["status"] == status and problem["detail"] and problem["title"]
        assert str(learner_path.parent) not in response.text


def test_the_detail_names_the_value_and_what_is_wrong_with_it(send: Send) -> None:
    for path, request, status, detail in DETAILS:
        response = send("POST", path, **request)
        assert response.status_code == status, (path, request, response.text)
        assert response.json()["detail"].startswith(detail), (path, request)


def test_a_wrong_method_is_answered_with_the_allowed_ones(send: Send) -> None:
    for path, methods in (("/v1/session", "DELETE, POST"), ("/v1/classes/1", "DELETE, PATCH"), ("/v1/learn", "POST")):
        response = send("PUT", path)
        assert (response.status_code, response.headers["allow"]) == (405, methods)


def test_an_unexpected_error_is_logged_and_not_shown(
    send: Send, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr("siesta.Siesta.info", fail)
    response = send("GET", "/v1/info")
    assert (response.status_code, response.json()["detail"]) == (500, "the service failed: its log has the details")
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("status", "header", "value"),
    [(401, "www-authenticate", "Bearer"), (429, "retry-after", "1"), (503, "retry-after", "1")],
)
def test_some_statuses_have_a_header_by_default(status: int, header: str, value: str) -> None:
    assert problem_response(Problem(status, "a sentence")).headers[header] == value


def test_a_problem_may_have_further_members_and_headers() -> None:
    response = problem_response(Problem(503, "full", {"Retry-After": "7"}, safe=3))
    assert response.headers["retry-after"] == "7"
    assert b'"safe": 3' in response.body
