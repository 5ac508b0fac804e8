"""Dependencies that the routes share, and the problems that every route may answer with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Path, Request

from siesta.service.auth import TokenVerifier
from siesta.service.metrics import Metrics
from siesta.service.options import ServiceOptions
from siesta.service.problems import PROBLEM_JSON
from siesta.service.schemas import ProblemDetails
from siesta.service.sse import EventStreams
from siesta.service.uploads import UploadDecoder
from siesta.service.worker import LearnerThread
from siesta.sleep.job import SleepJob

__all__ = ["COMMON_PROBLEMS", "Context", "IdPath", "ServiceContext", "problems"]

_DESCRIPTIONS = {
    400: "The body cannot be parsed, or the Host header is not allowed.",
    401: "The token is missing or wrong.",
    403: "The token does not allow this, or the request comes from another site.",
    404: "The class, sample or generation does not exist.",
    409: "The request is not possible in the present state.",
    413: "The body has too many bytes, or the request too many images.",
    422: "An image, label or value cannot be used.",
    429: "Too many requests: wait for the seconds in `Retry-After`.",
    500: "A bug in the service, a damaged learner, or a change after which the disk failed: `applied` says so.",
    503: "The request took too long, the disk refused it, the learner's folder is missing, or the service is closing.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI entries of the problems that a route may answer with."""
    return {
        status: {
            "description": _DESCRIPTIONS[status],
            "model": ProblemDetails,
            "content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
        }
        for status in statuses
    }


COMMON_PROBLEMS = problems(400, 401, 403, 429, 500, 503)


@dataclass(frozen=True)
class ServiceContext:
    """Objects that the routes of one service share.

    Attributes:
        worker: Thread that owns the learner.
        uploads: Decoder of uploaded images.
        job: Background sleep of the learner.
        verifier: Check of tokens.
        metrics: Counters for Prometheus.
        options: Options that the service was started with.
        streams: Open event streams.
        sleep_start_lock: Held while a sleep is being started, so that only one is.
    """

    worker: LearnerThread
    uploads: UploadDecoder
    job: SleepJob
    verifier: TokenVerifier
    metrics: Metrics
    options: ServiceOptions
    streams: EventStreams
    sleep_start_lock: asyncio.Lock = field(default_factory=asyncio.Lock)


def _get_context(request: Request) -> ServiceContext:
    context: ServiceContext = request.app.state.context
    return context


Context = Annotated[ServiceContext, Depends(_get_context)]
"""Type of a route's parameter that receives the service's context."""

IdPath = Annotated[int, Path(ge=1, le=2**53 - 1, description="Id, which is never reused.", examples=[1])]
"""Type of a route's parameter for the id of a class or sample."""
