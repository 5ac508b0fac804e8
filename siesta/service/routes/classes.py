"""Routes that list, rename, merge, correct and forget classes and samples."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from siesta.errors import BadInput
from siesta.learner import Siesta
from siesta.service.deps import COMMON_PROBLEMS, Context, IdPath, problems
from siesta.service.endpoints import ASK, TEACH
from siesta.service.problems import Problem
from siesta.service.schemas import (
    ClassListResponse,
    ClassResponse,
    CorrectionResponse,
    LabelRequest,
    MergeRequest,
)
from siesta.store import clean_label

__all__ = ["router"]

router = APIRouter(prefix="/v1", responses=COMMON_PROBLEMS)


@router.get("/classes", tags=["classes"], dependencies=[ASK])
async def classes(context: Context) -> ClassListResponse:
    """List all classes, oldest first."""
    return ClassListResponse(classes=await context.worker.query(_list_classes))


def _list_classes(learner: Siesta) -> list[ClassResponse]:
    thumbnails = learner.thumbnails.by_class()
    rejections = learner.rejections()
    return [
        ClassResponse(
            id=record.id,
            label=record.label,
            taught=record.taught,
            stored=record.stored,
            thumbnails=thumbnails.get(record.id, []),
            rejections=[rejection for rejection, label in rejections.items() if label == record.label],
        )
        for record in learner.classes()
    ]


def _find_class(learner: Siesta, class_id: int) -> ClassResponse:
    for response in _list_classes(learner):
        if response.id == class_id:
            return response
    raise Problem(404, f"there is no class {class_id}: it never existed, or was merged or forgotten")


@router.patch("/classes/{class_id}", tags=["classes"], dependencies=[TEACH], responses=problems(404, 409, 422))
async def rename(context: Context, class_id: IdPath, body: LabelRequest) -> ClassResponse:
    """Rename a class."""
    label = clean_label(body.label)

    def rename_class(learner: Siesta) -> ClassResponse:
        before = _find_class(learner, class_id)
        if before.label == label:
            return before
        if any(record.label == label for record in learner.classes()):
            raise Problem(409, f"there is a class '{label}' already: merge the two")
        learner.rename(before.label, label)
        return _find_class(learner, class_id)

    return await context.worker.modify(rename_class)


@router.post("/classes/{class_id}/merge", tags=["classes"], dependencies=[TEACH], responses=problems(404, 409, 422))
async def merge(context: Context, class_id: IdPath, body: MergeRequest) -> ClassResponse:
    """Merge a class into another, which is returned."""

    def merge_classes(learner: Siesta) -> ClassResponse:
        learner.merge(_find_class(learner, class_id).label, _find_class(learner, body.into).label)
        return _find_class(learner, body.into)

    return await context.worker.modify(merge_classes)


@router.delete(
    "/classes/{class_id}", tags=["classes"], dependencies=[TEACH], status_code=204, responses=problems(404, 409, 422)
)
async def forget(context: Context, class_id: IdPath) -> None:
    """Forget a class: remove its samples, thumbnails and means from every file."""
    await context.worker.modify(lambda learner: learner.forget(_find_class(learner, class_id).label))


@router.patch("/samples/{sample_id}", tags=["samples"], dependencies=[TEACH], responses=problems(404, 409, 422))
async def correct(context: Context, sample_id: IdPath, body: LabelRequest) -> CorrectionResponse:
    """Learn a sample again under another label and remove the old one."""
    label = clean_label(body.label)

    def correct_sample(learner: Siesta) -> CorrectionResponse:
        _check_sample(learner, sample_id)
        return CorrectionResponse(id=learner.correct(sample_id, label))

    return await context.worker.modify(correct_sample)


@router.delete(
    "/samples/{sample_id}", tags=["samples"], dependencies=[TEACH], status_code=204, responses=problems(404, 409, 422)
)
async def forget_sample(context: Context, sample_id: IdPath) -> None:
    """Forget one sample, or take a rejection back."""

    def forget_one(learner: Siesta) -> None:
        if sample_id not in learner.rejections():
            _check_sample(learner, sample_id)
        learner.forget_sample(sample_id)

    await context.worker.modify(forget_one)


def _check_sample(learner: Siesta, sample_id: int) -> None:
    try:
        learner.label_of(sample_id)
    except BadInput as error:
        raise Problem(404, str(error)) from None


@router.get(
    "/samples/{sample_id}/thumbnail",
    tags=["samples"],
    dependencies=[ASK],
    response_class=Response,
    responses={
        200: {
            "content": {"image/webp": {"schema": {"type": "string", "format": "binary"}}},
            "description": "The thumbnail.",
        },
        304: {"description": "The thumbnail has not changed."},
        **problems(404, 422),
    },
)
async def thumbnail(request: Request, context: Context, sample_id: IdPath) -> Response:
    """Return the thumbnail of a sample."""
    image = await context.worker.query(lambda learner: learner.thumbnails.get(sample_id))
    if image is None:
        raise Problem(404, f"there is no image of sample {sample_id}")
    # Ids are never reused, so the id is a valid tag; clients have to revalidate, because samples can be forgotten.
    tag = f'"{sample_id}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(image, headers=headers, media_type="image/webp")
