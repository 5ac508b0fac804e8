"""Routes around sleep: begin, follow, wake up, go back; and the stream of what changes."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import StreamingResponse

from siesta.errors import BadInput, DiskRefused
from siesta.jobs import SleepStatus
from siesta.learner import Siesta
from siesta.policies import DEFAULT_POLICY, make_policy
from siesta.service.parts import COMMON, PartsHere, problems
from siesta.service.problems import Problem
from siesta.service.shapes import Budget, GenerationList, GenerationShape, Report, SleepProgress, SleepShape

__all__ = ["router", "shape_of"]

router = APIRouter(prefix="/v1", responses=COMMON)

Number = Annotated[int, Path(ge=0, le=2**53 - 1, description="Of a generation that is kept.", examples=[0])]


def shape_of(status: SleepStatus) -> SleepShape:
    """How a sleep stands, for clients."""
    return SleepShape(
        state=status.state,
        running=status.running,
        words=status.words,
        started=status.started,
        progress=None if status.progress is None else SleepProgress.model_validate(status.progress),
        report=None if status.report is None else Report.of(status.report),
    )


async def _standing(parts: PartsHere) -> SleepShape:
    return shape_of(await asyncio.to_thread(parts.job.status))


@router.post("/sleep", tags=["sleep"], status_code=202, responses=problems(409, 422))
async def sleep(parts: PartsHere, wanted: Budget) -> SleepShape:
    """Begins to sleep, in a process of its own; answered when it has begun."""
    policy = DEFAULT_POLICY if wanted.policy is None else wanted.policy
    make_policy(policy)
    budget = wanted.model_dump(include={"updates", "seconds", "until"}, exclude_none=True)
    if len(budget) != 1:
        raise BadInput("say how long to sleep by exactly one of updates, seconds or until")
    async with parts.beginning:
        begin = await parts.desk.look(lambda learner: learner.sleep_async)
        try:
            await asyncio.to_thread(begin, **budget, policy=policy)  # which takes seconds, and touches no database
        except BadInput as error:
            status = 503 if isinstance(error, DiskRefused) else 409
            raise Problem(status, str(error).replace(str(parts.desk.path), parts.desk.path.name)) from error
    return await _standing(parts)


@router.get("/sleep", tags=["sleep"])
async def sleep_status(parts: PartsHere) -> SleepShape:
    """How the last sleep stands."""
    return await _standing(parts)


@router.delete("/sleep", tags=["sleep"], status_code=202, responses=problems(409))
async def wake(parts: PartsHere) -> SleepShape:
    """Wakes it up after the batch it is in; what it has consolidated is kept."""
    try:
        parts.job.wake()
    except DiskRefused:
        raise
    except BadInput:
        raise Problem(409, "it does not sleep: there is nothing to wake up from") from None
    return await _standing(parts)


@router.get("/generations", tags=["sleep"])
async def generations(parts: PartsHere) -> GenerationList:
    """Weights that are kept, oldest first."""
    return await parts.desk.look(_generations)


@router.post("/generations/{number}/use", tags=["sleep"], responses=problems(404, 409, 422))
async def use(parts: PartsHere, number: Number) -> GenerationList:
    """Answers with these weights; what was taught since they were made is counted in."""

    def work(learner: Siesta) -> GenerationList:
        if number not in {generation.number for generation in learner.generations()}:
            raise Problem(404, f"there is no generation {number}, or not any more")
        learner.roll_back(number)
        return _generations(learner)

    return await parts.desk.change(work)


def _generations(learner: Siesta) -> GenerationList:
    return GenerationList(
        generations=[
            GenerationShape(
                number=kept.number,
                made=kept.made,
                in_use=kept.in_use,
                report=None if kept.report is None else Report.of(kept.report, made=kept.made),
            )
            for kept in learner.generations()
        ]
    )


@router.get(
    "/events",
    tags=["sleep"],
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Events."}},
)
async def events(request: Request, parts: PartsHere) -> StreamingResponse:
    """What changes, as it changes: `sleep` and `changed`, as server-sent events without end."""
    offered = request.state.offered
    return parts.streams.listen(lambda: parts.options.local or parts.keeper.still_knows(offered))
