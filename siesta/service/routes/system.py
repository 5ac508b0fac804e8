"""Routes for the service as a whole: information, browser sessions, health checks and metrics."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from siesta import __version__
from siesta.learner import Siesta
from siesta.policies import DEFAULT_POLICY, POLICIES
from siesta.service.auth import Credentials, cookie_name
from siesta.service.deps import COMMON_PROBLEMS, Context, problems
from siesta.service.endpoints import ASK, OPEN
from siesta.service.problems import Problem
from siesta.service.schemas import (
    InfoBackbone,
    InfoBytes,
    InfoCodec,
    InfoHeldOut,
    InfoLimits,
    InfoPolicy,
    InfoResponse,
    InfoSamples,
    InfoSleepNeed,
    SessionRequest,
    SleepReportResponse,
)
from siesta.sleep.binomial import interval_of
from siesta.sleep.calibration import Confidence

__all__ = ["router"]

router = APIRouter(responses=COMMON_PROBLEMS)
_SCOPES: tuple[Literal["ask", "teach"], ...] = ("ask", "teach")
_COOKIE_SECONDS = 365 * 24 * 3600


@router.get("/v1/info", tags=["info"], dependencies=[ASK])
async def info(request: Request, context: Context) -> InfoResponse:
    """Return the contents, the cost and the parts of the learner, and the limits of the service."""
    facts, held_out = await context.worker.query(lambda learner: (learner.info(), _held_out(learner)))
    return InfoResponse(
        name=context.worker.path.name,
        version=__version__,
        generation=context.worker.generation,
        samples=InfoSamples.model_validate(facts.samples),
        bytes=InfoBytes.model_validate(facts.bytes),
        classes=len(facts.classes),
        held_out=held_out,
        codec=InfoCodec.model_validate(facts.codec),
        backbone=InfoBackbone.model_validate(facts.backbone),
        sleep_need=InfoSleepNeed.model_validate(facts.sleep_need.as_dict()),
        sleeps=[SleepReportResponse.from_stored(report) for report in facts.sleeps],
        policies=[InfoPolicy(name=name, words=summary) for name, summary in POLICIES.summaries().items()],
        default_policy=DEFAULT_POLICY,
        thumbnails=context.options.thumbnails,
        scopes=[scope for scope in _SCOPES if scope in request.state.scopes],
        limits=InfoLimits.model_validate(context.options.limits),
    )


def _held_out(learner: Siesta) -> InfoHeldOut:
    """Return the held-out evaluation of the active generation."""
    report: dict[str, Any] = {}
    for generation in learner.generations():
        if generation.in_use:
            report = dict(generation.report or {})
    samples, accuracy = report.get("held_out") or 0, report.get("accuracy_after")
    return InfoHeldOut(
        samples=samples,
        accuracy=accuracy,
        interval=interval_of(accuracy, samples),
        optimistic=bool(report.get("optimistic")),
        least_error_rate=Confidence.from_state(report.get("confidence")).least_error_rate,
    )


@router.post("/v1/session", tags=["session"], dependencies=[OPEN], status_code=204, responses=problems(422))
async def begin_session(request: Request, response: Response, context: Context, body: SessionRequest) -> None:
    """Set a cookie that stands for a token, for browsers."""
    if context.options.loopback_only:
        return
    context.verifier.authorize(request.client.host if request.client else "", Credentials(body.token))
    response.set_cookie(
        cookie_name(request.headers),
        body.token,
        max_age=_COOKIE_SECONDS,
        httponly=True,
        samesite="strict",
        secure=context.options.certificate is not None,
    )


@router.delete("/v1/session", tags=["session"], dependencies=[OPEN], status_code=204)
async def end_session(request: Request, response: Response) -> None:
    """Delete the cookie."""
    response.delete_cookie(cookie_name(request.headers), httponly=True, samesite="strict")


@router.head("/healthz", dependencies=[OPEN], include_in_schema=False)
@router.get("/healthz", tags=["watch"], dependencies=[OPEN], response_class=PlainTextResponse)
async def healthz() -> str:
    """Answer if the process is alive."""
    return "alive\n"


@router.head("/readyz", dependencies=[OPEN], include_in_schema=False)
@router.get("/readyz", tags=["watch"], dependencies=[OPEN], response_class=PlainTextResponse)
async def readyz(context: Context) -> str:
    """Answer if the service accepts requests and its learner can be changed."""
    worker = context.worker
    if not worker.ready:
        raise Problem(503, "the learner is closed: start the service again")
    if worker.failure is not None:
        raise Problem(503, str(worker.failure).replace(str(worker.path), worker.path.name))
    return "ready\n"


@router.get("/metrics", tags=["watch"], dependencies=[ASK], response_class=PlainTextResponse)
async def metrics(context: Context) -> Response:
    """Return the metrics of the service and its learner for Prometheus."""
    facts = await context.worker.query(Siesta.info)
    status = await asyncio.to_thread(context.job.status)
    progress = status.progress if status.running else None
    page = context.metrics.render(facts, context.worker.generation, status.state, progress)
    return Response(page, media_type=CONTENT_TYPE_LATEST)
