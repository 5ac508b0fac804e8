"""Error responses: every error is `application/problem+json` (RFC 9457) with one sentence that can be shown."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from siesta.errors import Applied, Busy, Damaged, DiskRefused, SiestaError

__all__ = ["PROBLEM_JSON", "Problem", "add_problem_handlers", "problem_response"]

PROBLEM_JSON = "application/problem+json"
_RETRY_AFTER = "1"  # seconds, where no better value is known
_REPLACED_DETAILS = {
    "Not Found": "there is nothing at this address",
    "Method Not Allowed": "this method is not allowed at this address",
    "There was an error parsing the body": "the body cannot be parsed: check that it is UTF-8",
}
_SEND_JSON = "send the body as JSON with content-type: application/json"
_STATUSES: dict[type[SiestaError], int] = {
    Busy: 409,
    Damaged: 500,
    Applied: 500,  # not 503, which asks to send the request again
    DiskRefused: 503,
    SiestaError: 422,
}
_log = logging.getLogger(__name__)


class Problem(Exception):
    """Error that is answered to the client.

    Attributes:
        status: HTTP status.
        detail: One sentence about what is wrong and what to do.
        headers: Headers of the response.
        extra: Further members of the problem.

    Example:
        >>> problem = Problem(503, "the disk is full: free some space and try again", safe=32)
        >>> problem.status, problem.headers, problem.extra
        (503, {'Retry-After': '1'}, {'safe': 32})
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None, **extra: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = {**_default_headers(status), **(headers or {})}
        self.extra = extra


def _default_headers(status: int) -> dict[str, str]:
    if status in (429, 503):
        return {"Retry-After": _RETRY_AFTER}
    return {"WWW-Authenticate": "Bearer"} if status == 401 else {}


def problem_response(problem: Problem) -> Response:
    """Return the response for a problem."""
    try:
        title = HTTPStatus(problem.status).phrase
    except ValueError:
        title = "Error"
    body = {"type": "about:blank", "title": title, "status": problem.status, "detail": problem.detail, **problem.extra}
    return Response(json.dumps(body), problem.status, problem.headers, PROBLEM_JSON)


def add_problem_handlers(app: FastAPI, path: Path, routes: Sequence[BaseRoute]) -> None:
    """Make an application answer every error with a problem.

    Args:
        app: The application.
        path: Folder of the learner; errors show its name only, not where it lies.
        routes: Routes whose methods are listed in `Allow` when a method is not allowed.
    """

    async def answer(request: Request, error: Exception) -> Response:
        problem = _as_problem(error, path)
        if problem.status == 405:
            problem.headers["Allow"] = _allowed_methods(routes, request)
        if problem.status == 500:
            _log.error("%s", problem.detail, exc_info=None if isinstance(error, SiestaError) else error)
        return problem_response(problem)

    for error_type in (Problem, RequestValidationError, HTTPException, SiestaError, Exception):
        app.add_exception_handler(error_type, answer)


def _as_problem(error: Exception, path: Path) -> Problem:
    if isinstance(error, Problem):
        return error
    if isinstance(error, RequestValidationError):
        return Problem(422, _validation_detail(error))
    if isinstance(error, HTTPException):
        detail = _REPLACED_DETAILS.get(error.detail, _uncapitalized(error.detail))
        return Problem(error.status_code, detail, error.headers)
    if isinstance(error, SiestaError):
        status = next(status for error_type, status in _STATUSES.items() if isinstance(error, error_type))
        applied: dict[str, Any] = {"applied": True, "sample": error.sample} if isinstance(error, Applied) else {}
        return Problem(status, str(error).replace(str(path), path.name), **applied)
    return Problem(500, "the service failed: its log has the details")


def _allowed_methods(routes: Sequence[BaseRoute], request: Request) -> str:
    """Return the methods of all routes at an address; the framework lists those of the first only."""
    methods: set[str] = set()
    for route in routes:
        match, _ = route.matches(request.scope)
        if match is not Match.NONE:
            methods |= getattr(route, "methods", None) or set()
    return ", ".join(sorted(methods or {"GET", "HEAD"}))  # static files have no route of their own


def _uncapitalized(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _validation_detail(error: RequestValidationError) -> str:
    """Return a sentence that names each invalid value without repeating it, because it may be a whole file."""
    # An optional value yields an error for its type and one for None; the second says nothing more.
    sentences = [_sentence(item) for item in error.errors() if item["type"] != "none_required"]
    return "; ".join(dict.fromkeys(sentences)) or "the request cannot be used"


def _sentence(item: Mapping[str, Any]) -> str:
    """Return what is wrong with one value, without the framework's own terms."""
    error_type = item["type"]
    name = _value_name(item["loc"])
    if error_type == "json_invalid":
        return f"the body is not JSON: {_uncapitalized(item['ctx']['error'])}"
    if name == "the body":
        return _SEND_JSON if isinstance(item["input"], bytes | None) else "send a JSON object, such as {...}"
    if error_type == "missing":
        return f"{name} is missing"
    if error_type == "extra_forbidden":
        return f"{name} is not a known field: remove it"
    if error_type == "string_pattern_mismatch":
        return f"{name} should be a time of day, such as 06:30"
    if "UploadFile" in item["msg"]:
        return f"{name}: send it as a file"
    return re.sub(r"^\w+(?= should)", name, item["msg"].partition(",")[0])


def _value_name(location: Sequence[str | int]) -> str:
    """Return a field's name, with its number in a list, from the framework's location of an error."""
    match location:
        case [_, str(name), int(index), *_]:
            return f"{name} {index + 1}"
        case [_, str(name), *_]:
            return name
    return "the body"
