"""Routes that start, follow and end a sleep, list and use generations, and stream events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Request

from siesta.errors import BadInput, DiskRefused
from siesta.learner import Siesta
from siesta.service.deps import COMMON_PROBLEMS, Context, problems
from siesta.service.endpoints import ASK, TEACH
from siesta.service.problems import Problem
from siesta.service.schemas import (
    GenerationListResponse,
    GenerationResponse,
    SleepProgressResponse,
    SleepReportResponse,
    SleepRequest,
    SleepStatusResponse,
)
from siesta.service.sse import EventStreamResponse
from siesta.sleep.job import SleepJob, start_sleep
from siesta.sleep.options import SleepOptions
from siesta.sleep.status import SleepStatus

__all__ = ["router", "status_response"]

router = APIRouter(prefix="/v1", responses=COMMON_PROBLEMS)

GenerationNumber = Annotated[
    int, Path(ge=0, le=2**53 - 1, description="Number of a generation that is kept.", examples=[0])
]


def status_response(status: SleepStatus) -> SleepStatusResponse:
    """Return the status of a sleep as clients get it."""
    return SleepStatusResponse(
        state=status.state,
        running=status.running,
        words=status.message,
        started=status.started,
        progress=None if status.progress is None else SleepProgressResponse.model_validate(status.progress),
        report=None if status.report is None else SleepReportResponse.from_stored(status.report),
    )


async def _status(context: Context) -> SleepStatusResponse:
    return status_response(await asyncio.to_thread(context.job.status))


@router.post("/sleep", tags=["sleep"], dependencies=[TEACH], status_code=202, responses=problems(409, 422))
async def sleep(context: Context, request: SleepRequest) -> SleepStatusResponse:
    """Start a sleep in a process of its own; the response comes when it has begun."""
    options = SleepOptions(**request.model_dump(exclude_none=True))
    if sum(budget is not None for budget in (request.updates, request.seconds, request.until)) > 1:
        raise BadInput("a sleep has at most one budget: give one of updates, seconds or until, or none")
    async with context.sleep_start_lock:
        start: Callable[[SleepOptions], SleepJob] = await context.worker.query(lambda learner: learner.sleep_async)
        if context.options.sleeper is not None:
            chosen = context.options
            start = partial(
                start_sleep, context.worker.path, sleeper=chosen.sleeper, sleeper_token=chosen.sleeper_token
            )
        try:
            await asyncio.to_thread(start, options)  # takes seconds, and touches no database
        except BadInput as error:
            status = 503 if isinstance(error, DiskRefused) else 409
            raise Problem(status, str(error).replace(str(context.worker.path), context.worker.path.name)) from error
    return await _status(context)


@router.get("/sleep", tags=["sleep"], dependencies=[ASK])
async def sleep_status(context: Context) -> SleepStatusResponse:
    """Status of the last sleep."""
    return await _status(context)


@router.delete("/sleep", tags=["sleep"], dependencies=[TEACH], status_code=202, responses=problems(409))
async def wake(context: Context) -> SleepStatusResponse:
    """End the sleep after the current batch; what it has consolidated is kept."""
    try:
        context.job.wake()
    except DiskRefused:
        raise
    except BadInput:
        raise Problem(409, "the learner is not asleep: there is nothing to wake up from") from None
    return await _status(context)


@router.get("/generations", tags=["sleep"], dependencies=[ASK])
async def generations(context: Context) -> GenerationListResponse:
    """Generations of weights that are kept, oldest first."""
    return await context.worker.query(_generations)


@router.post("/generations/{number}/use", tags=["sleep"], dependencies=[TEACH], responses=problems(404, 409, 422))
async def use(context: Context, number: GenerationNumber) -> GenerationListResponse:
    """Use the weights of this generation, together with what was taught since they were made."""

    def use_generation(learner: Siesta) -> GenerationListResponse:
        if number not in {generation.number for generation in learner.generations()}:
            raise Problem(404, f"there is no generation {number}: choose one of those that GET /v1/generations lists")
        learner.roll_back(number)
        return _generations(learner)

    return await context.worker.modify(use_generation)


def _generations(learner: Siesta) -> GenerationListResponse:
    return GenerationListResponse(
        generations=[
            GenerationResponse(
                number=kept.number,
                made=kept.made,
                in_use=kept.in_use,
                report=None if kept.report is None else SleepReportResponse.from_stored(kept.report, made=kept.made),
            )
            for kept in learner.generations()
        ]
    )


@router.get(
    "/events",
    tags=["sleep"],
    dependencies=[ASK],
    response_class=EventStreamResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Events."}},
)
async def events(request: Request, context: Context) -> EventStreamResponse:
    """Changes as server-sent events without end: `sleep` and `changed`."""
    credentials = request.state.credentials
    return context.streams.open(lambda: context.options.loopback_only or context.verifier.is_valid(credentials))
