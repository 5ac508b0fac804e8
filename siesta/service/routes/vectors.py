"""Routes that learn and predict vectors, for a learner that takes them in place of images."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
from fastapi import APIRouter

from siesta.contracts import Input
from siesta.errors import BadInput
from siesta.service.deps import COMMON_PROBLEMS, Context, ServiceContext, problems
from siesta.service.endpoints import ASK, TEACH
from siesta.service.multipart import QueuedRoute
from siesta.service.problems import Problem
from siesta.service.routes.learn import labels_for, predict_inputs, reject_inputs
from siesta.service.schemas import (
    LearnResponse,
    LearnVectorsRequest,
    PredictResponse,
    PredictVectorsRequest,
    RejectResponse,
)
from siesta.service.worker import LabelledInput, PredictOptions

__all__ = ["router"]

router = APIRouter(prefix="/v1/vectors", responses=COMMON_PROBLEMS, route_class=QueuedRoute)


@router.post("/learn", tags=["teach"], dependencies=[TEACH], responses=problems(409, 413, 422))
async def learn(context: Context, body: LearnVectorsRequest) -> LearnResponse:
    """Learn labelled vectors; the response is sent when their samples are durable."""
    labels = labels_for(body.labels, len(body.vectors))
    vectors = await _read(context, body.vectors)
    result = await context.worker.learn([LabelledInput(*parts) for parts in zip(vectors, labels, strict=True)])
    return LearnResponse.model_validate(result)


@router.post("/reject", tags=["teach"], dependencies=[TEACH], responses=problems(404, 409, 413, 422))
async def reject(context: Context, body: LearnVectorsRequest) -> RejectResponse:
    """Say that labels are wrong: for each vector one, or for one vector any number."""
    return await reject_inputs(context, await _read(context, body.vectors), body.labels)


@router.post("/predict", tags=["ask"], dependencies=[ASK], responses=problems(409, 413, 422))
async def predict(context: Context, body: PredictVectorsRequest) -> PredictResponse:
    """Predict the labels of vectors; possible during a sleep, too."""
    vectors = await _read(context, body.vectors)
    if body.threshold is not None and body.error_rate is not None:
        raise BadInput("give a threshold or an error rate, not both")
    return await predict_inputs(context, vectors, PredictOptions(body.top, body.threshold, body.error_rate))


async def _read(context: ServiceContext, vectors: Sequence[Sequence[float]]) -> list[npt.NDArray[Any]]:
    """Return the vectors of a request; raise if one of them cannot be used."""
    kind = context.worker.input
    if kind.noun != "vector":
        raise Problem(409, "this learner takes images, not vectors: send them to /v1/learn and /v1/predict")
    return await asyncio.to_thread(lambda: [_read_one(kind, *each) for each in enumerate(vectors, start=1)])


def _read_one(kind: Input, number: int, vector: Sequence[float]) -> npt.NDArray[Any]:
    try:
        return kind.read(vector)
    except BadInput as error:
        raise BadInput(f"vector {number}: {error}") from error
