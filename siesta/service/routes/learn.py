"""Routes that learn, predict and reject images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, File, Form, Query, UploadFile

from siesta.errors import BadInput
from siesta.learner import Siesta
from siesta.pipeline import Inputs
from siesta.service.deps import COMMON_PROBLEMS, Context, ServiceContext, problems
from siesta.service.endpoints import ASK, TEACH
from siesta.service.multipart import ImageRoute
from siesta.service.problems import Problem
from siesta.service.schemas import LabelScore, LearnResponse, PredictionResponse, PredictResponse, RejectResponse
from siesta.service.worker import LabelledInput, PredictOptions
from siesta.store import clean_label

__all__ = ["labels_for", "predict_inputs", "reject_inputs", "router"]

router = APIRouter(prefix="/v1", responses=COMMON_PROBLEMS, route_class=ImageRoute)

# Generators of clients take `format` for a file; the framework's schema for it has the media type only.
_FILE = {"type": "string", "format": "binary", "contentMediaType": "application/octet-stream"}
Images = Annotated[
    list[UploadFile], File(min_length=1, description="JPEG, PNG, WebP or GIF.", json_schema_extra={"items": _FILE})
]
Labels = Annotated[list[str], Form(min_length=1, description="One label for all images, or one for each.")]


@router.post("/learn", tags=["teach"], dependencies=[TEACH], responses=problems(409, 413, 422))
async def learn(context: Context, image: Images, label: Labels) -> LearnResponse:
    """Learn labelled images; the response is sent when their samples are durable."""
    labels = labels_for(label, len(image), "image")
    images = await context.uploads.decode(image)
    thumbnails: Sequence[bytes | None] = [None] * len(images)
    if context.options.thumbnails:
        thumbnails = await context.uploads.make_thumbnails(images)
    result = await context.worker.learn(
        [LabelledInput(*parts) for parts in zip(images, labels, thumbnails, strict=True)]
    )
    return LearnResponse.model_validate(result)


def labels_for(labels: Sequence[str], count: int, noun: str = "vector") -> list[str]:
    """Return as many labels as there are images or vectors."""
    clean = [clean_label(label) for label in labels]
    if len(clean) not in (1, count):
        raise BadInput(f"give one label for all {noun}s, or one for each: {count} {noun}s, {len(clean)} labels")
    return clean * count if len(clean) == 1 else clean


@router.post("/reject", tags=["teach"], dependencies=[TEACH], responses=problems(404, 409, 413, 422))
async def reject(context: Context, image: Images, label: Labels) -> RejectResponse:
    """Say that labels are wrong: for each image one, or for one image any number."""
    return await reject_inputs(context, await context.uploads.decode(image), label, "image")


async def reject_inputs(
    context: ServiceContext, inputs: Inputs, labels: Sequence[str], noun: str = "vector"
) -> RejectResponse:
    """Reject labels for images or vectors that were read."""
    given = list(inputs) * (len(labels) if len(inputs) == 1 else 1)
    pairs = list(zip(given, labels_for(labels, len(given), noun), strict=True))

    def reject_all(learner: Siesta) -> RejectResponse:
        known = {record.label for record in learner.classes()}
        for _, name in pairs:
            if name not in known:
                raise Problem(404, f"there is no class '{name}': it never existed, or was merged or forgotten")
        return RejectResponse(ids=[learner.reject(each, name) for each, name in pairs])

    return await context.worker.modify(reject_all)


@router.post("/predict", tags=["ask"], dependencies=[ASK], responses=problems(409, 413, 422))
async def predict(
    context: Context,
    image: Images,
    top: Annotated[int, Query(ge=1, le=100, description="Number of labels for each image.")] = 5,
    threshold: Annotated[
        float | None, Query(ge=0, le=1, description="Familiarity below which the label is `unknown`.")
    ] = None,
    error_rate: Annotated[
        float | None,
        Query(gt=0, lt=1, description="Largest share of wrong labels among those given, with 95 % confidence."),
    ] = None,
) -> PredictResponse:
    """Predict the labels of images; possible during a sleep, too."""
    if threshold is not None and error_rate is not None:
        raise BadInput("give a threshold or an error rate, not both")
    return await predict_inputs(
        context, await context.uploads.decode(image), PredictOptions(top, threshold, error_rate)
    )


async def predict_inputs(context: ServiceContext, inputs: Inputs, options: PredictOptions) -> PredictResponse:
    """Return the predictions of images or vectors that were read."""
    result = await context.worker.predict(inputs, options)
    predictions = [
        PredictionResponse(
            label=prediction.label,
            score=prediction.score,
            known=prediction.known,
            familiarity=prediction.familiarity,
            top=[LabelScore(label=label, score=score) for label, score in prediction.top],
        )
        for prediction in result.predictions
    ]
    return PredictResponse(predictions=predictions, generation=result.generation)
