"""Every error has one shape, `application/problem+json` (RFC 9457), and one sentence to show."""

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

from siesta.errors import Busy, Damaged, DiskRefused, SiestaError

__all__ = ["PROBLEM_JSON", "Problem", "answer_problems", "problem_response"]

PROBLEM_JSON = "application/problem+json"
_AGAIN_AFTER = "1"  # seconds, where nobody knows better
_SENTENCES = {
    "Not Found": "there is nothing here",
    "Method Not Allowed": "this method means nothing here",
    "There was an error parsing the body": "the body cannot be read: is it UTF-8?",
}
_AS_JSON = "send it as JSON with content-type: application/json"
_STATUSES: dict[type[SiestaError], int] = {Busy: 409, Damaged: 500, DiskRefused: 503, SiestaError: 422}
_log = logging.getLogger(__name__)


class Problem(Exception):
    """A request that is not answered as wished.

    Attributes:
        status: Of the answer.
        detail: One sentence.
        headers: Of the answer, besides.
        more: Members of the problem, besides.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.more = status, detail, more
        self.headers = {**_headers(status), **(headers or {})}


def _headers(status: int) -> dict[str, str]:
    if status in (429, 503):
        return {"Retry-After": _AGAIN_AFTER}
    return {"WWW-Authenticate": "Bearer"} if status == 401 else {}


def problem_response(problem: Problem) -> Response:
    """The answer that says it."""
    try:
        title = HTTPStatus(problem.status).phrase
    except ValueError:
        title = "Error"
    body = {"type": "about:blank", "title": title, "status": problem.status, "detail": problem.detail, **problem.more}
    return Response(json.dumps(body), problem.status, problem.headers, PROBLEM_JSON)


def answer_problems(app: FastAPI, path: Path, routes: Sequence[BaseRoute]) -> None:
    """Gives every error of an app its shape.

    Args:
        app: The whole of it.
        path: The learner's folder, which is named without where it lies.
        routes: All that have methods.
    """

    def as_problem(error: Exception) -> Problem:
        if isinstance(error, Problem):
            return error
        if isinstance(error, RequestValidationError):
            return Problem(422, _invalid(error))
        if isinstance(error, HTTPException):
            return Problem(error.status_code, _SENTENCES.get(error.detail, _words(error.detail)), error.headers)
        if isinstance(error, SiestaError):
            status = next(status for kind, status in _STATUSES.items() if isinstance(error, kind))
            return Problem(status, str(error).replace(str(path), path.name))
        return Problem(500, "something went wrong on our side: the service's log says what")

    async def answer(request: Request, error: Exception) -> Response:
        problem = as_problem(error)
        if problem.status == 405:
            problem.headers["Allow"] = _allowed(routes, request)
        if problem.status == 500:
            _log.error("%s", problem.detail, exc_info=None if isinstance(error, SiestaError) else error)
        return problem_response(problem)

    for kind in (Problem, RequestValidationError, HTTPException, SiestaError, Exception):
        app.add_exception_handler(kind, answer)


def _allowed(routes: Sequence[BaseRoute], request: Request) -> str:
    """Methods of all routes at an address, where the framework names those of the first; of a file, GET."""
    methods: set[str] = set()
    for route in routes:
        found, _ = route.matches(request.scope)
        if found is not Match.NONE:
            methods |= getattr(route, "methods", None) or set()
    return ", ".join(sorted(methods or {"GET", "HEAD"}))


def _words(detail: str) -> str:
    """A sentence of the framework, as one of ours."""
    return detail[:1].lower() + detail[1:]


def _invalid(error: RequestValidationError) -> str:
    """Names each value that cannot be used; never repeats it, for it may be a whole file."""
    found = [_sentence(one) for one in error.errors() if one["type"] != "none_required"]  # it may be left out, too
    return "; ".join(dict.fromkeys(found)) or "the request cannot be used"


def _sentence(one: Mapping[str, Any]) -> str:
    """What is wrong with one value, without the framework's names for it."""
    kind, words, place = one["type"], one["msg"], _place(one["loc"])
    if kind == "json_invalid":
        return f"the body is not JSON: {_words(one['ctx']['error'])}"
    if place == "the body":
        return _AS_JSON if isinstance(one["input"], bytes | None) else "send a JSON object, like {...}"
    if kind == "missing":
        return f"{place} is missing"
    if kind == "extra_forbidden":
        return f"{place} means nothing here"
    if kind == "string_pattern_mismatch":
        return f"{place} should be a time of day, like 06:30"
    if "UploadFile" in words:
        return f"{place}: send it as a file"
    return re.sub(r"^\w+(?= should)", place, words.partition(",")[0])


def _place(loc: Sequence[str | int]) -> str:
    """A field's name, with its number where there are several; the rest is how the framework looks at it."""
    match loc:
        case [_, str(name), int(index), *_]:
            return f"{name} {index + 1}"
        case [_, str(name), *_]:
            return name
    return "the body"
