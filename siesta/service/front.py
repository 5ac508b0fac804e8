"""Routes for those who look at the service as a whole: its facts, whether it lives, and the browser's cookie."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from siesta import __version__
from siesta.learner import Siesta
from siesta.policies import DEFAULT_POLICY, POLICIES
from siesta.service.guard import Offered, cookie_name
from siesta.service.parts import COMMON, Parts, PartsHere, problems
from siesta.service.problems import Problem
from siesta.service.shapes import HeldOut, Info, LimitsShape, Password, PolicyShape, Report
from siesta.service.tokens import SCOPES

__all__ = ["router"]

router = APIRouter(responses=COMMON)
_A_YEAR = 365 * 24 * 3600


@router.get("/v1/info", tags=["info"])
async def info(request: Request, parts: PartsHere) -> Info:
    """What it knows, what it costs, what it is made of."""
    facts, held_out = await parts.desk.look(lambda learner: (learner.info(), _held_out(learner)))
    return Info(
        name=parts.desk.path.name,
        version=__version__,
        generation=parts.desk.generation,
        samples=facts["samples"],
        bytes=facts["bytes"],
        classes=len(facts["classes"]),
        held_out=held_out,
        codec=facts["codec"],
        backbone=facts["backbone"],
        sleeps=[Report.of(report) for report in facts["sleeps"]],
        policies=[
            PolicyShape(name=name, words=(policy.__doc__ or "").splitlines()[0].rstrip("."))
            for name, policy in POLICIES.items()
        ],
        default_policy=DEFAULT_POLICY,
        thumbnails=parts.options.thumbnails,
        scopes=[scope for scope in SCOPES if scope in request.state.scopes],
        limits=LimitsShape.model_validate(parts.options.limits),
    )


def _held_out(learner: Siesta) -> HeldOut:
    report: dict[str, Any] = {}
    for kept in learner.generations():
        if kept.in_use:
            report = dict(kept.report or {})
    return HeldOut(samples=report.get("held_out") or 0, accuracy=report.get("accuracy_after"))


@router.post("/v1/session", tags=["session"], status_code=204, responses=problems(422))
async def begin_session(request: Request, response: Response, parts: PartsHere, shown: Password) -> None:
    """Gives a browser a cookie that stands for its token."""
    if parts.options.local:
        return
    parts.keeper.admit(request.client.host if request.client else "", Offered(shown.token))
    response.set_cookie(
        cookie_name(request.headers),
        shown.token,
        max_age=_A_YEAR,
        httponly=True,
        samesite="strict",
        secure=parts.options.certificate is not None,
    )


@router.delete("/v1/session", tags=["session"], status_code=204)
async def end_session(request: Request, response: Response) -> None:
    """Takes the cookie back."""
    response.delete_cookie(cookie_name(request.headers), httponly=True, samesite="strict")


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", tags=["watch"], response_class=PlainTextResponse)
async def healthz() -> str:
    """Whether the process lives."""
    return "alive\n"


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", tags=["watch"], response_class=PlainTextResponse)
async def readyz(parts: PartsHere) -> str:
    """Whether it takes requests."""
    if not parts.desk.ready:
        raise Problem(503, "the learner is closed: start the service again")
    if parts.desk.trouble is not None:
        raise Problem(503, str(parts.desk.trouble).replace(str(parts.desk.path), parts.desk.path.name))
    return "ready\n"


@router.get("/metrics", tags=["watch"], response_class=PlainTextResponse)
async def metrics(parts: PartsHere) -> Response:
    """What was done and how it stands, for Prometheus."""
    return Response(await _page(parts), media_type=CONTENT_TYPE_LATEST)


async def _page(parts: Parts) -> bytes:
    facts = await parts.desk.look(Siesta.info)
    status = await asyncio.to_thread(parts.job.status)
    return parts.metrics.page(facts, parts.desk.generation, status.state, status.progress if status.running else None)
