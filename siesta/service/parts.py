"""What the routes of a service share, and what every one of them may answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Path, Request

from siesta.jobs import SleepJob
from siesta.service.desk import Desk
from siesta.service.events import Streams
from siesta.service.guard import Keeper
from siesta.service.metrics import Metrics
from siesta.service.options import Options
from siesta.service.problems import PROBLEM_JSON
from siesta.service.shapes import ProblemShape
from siesta.service.uploads import Uploads

__all__ = ["COMMON", "Id", "Parts", "PartsHere", "problems"]

_MEANINGS = {
    400: "A body or a Host that cannot be used.",
    401: "No token, or a wrong one.",
    403: "A token that may not do this, or a request from another site.",
    404: "There is no such thing.",
    409: "Not now.",
    413: "Too many bytes, or too many pictures.",
    422: "A picture, label or value that cannot be used.",
    429: "Too much at once: wait the seconds in `Retry-After`.",
    500: "Our bug, or a damaged learner.",
    503: "It took too long, the disk refused, the learner is gone, or the service is closing.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Problems that a route may answer with, for its schema."""
    return {
        status: {
            "description": _MEANINGS[status],
            "model": ProblemShape,
            "content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/ProblemShape"}}},
        }
        for status in statuses
    }


COMMON = problems(400, 401, 403, 429, 500, 503)


@dataclass(frozen=True)
class Parts:
    """What the routes work with.

    Attributes:
        desk: Where they meet the learner.
        uploads: What makes pictures of files.
        job: The learner's sleep.
        keeper: Who knows the tokens.
        metrics: What is counted.
        options: What the service was started with.
        streams: Who listens to what changes.
        beginning: Held while a sleep begins.
    """

    desk: Desk
    uploads: Uploads
    job: SleepJob
    keeper: Keeper
    metrics: Metrics
    options: Options
    streams: Streams
    beginning: asyncio.Lock = field(default_factory=asyncio.Lock)


def _parts(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


PartsHere = Annotated[Parts, Depends(_parts)]
Id = Annotated[int, Path(ge=1, le=2**53 - 1, description="Never given twice.", examples=[1])]
