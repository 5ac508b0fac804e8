"""Routes to teach, to ask, and to change one's mind."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Annotated

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile

from siesta.errors import BadInput
from siesta.learner import Siesta
from siesta.service.desk import Lesson, Manner
from siesta.service.forms import FormRoute
from siesta.service.parts import COMMON, Id, PartsHere, problems
from siesta.service.problems import Problem
from siesta.service.shapes import (
    Answer,
    Answers,
    ClassList,
    ClassShape,
    Correction,
    LearnedShape,
    Merge,
    NewLabel,
    Score,
)
from siesta.store import clean_label

__all__ = ["router"]

router = APIRouter(prefix="/v1", responses=COMMON, route_class=FormRoute)

Images = Annotated[list[UploadFile], File(min_length=1, description="JPEG, PNG, WebP or GIF.")]
Labels = Annotated[list[str], Form(min_length=1, description="One for all pictures, or one for each.")]


@router.post("/learn", tags=["teach"], responses=problems(413, 422))
async def learn(parts: PartsHere, image: Images, label: Labels) -> LearnedShape:
    """Learns labelled pictures; answered when they are durable."""
    labels = _one_each(label, len(image))
    pictures = await parts.uploads.read(image)
    small: Sequence[bytes | None] = [None] * len(pictures)
    if parts.options.thumbnails:
        small = await parts.uploads.thumbnails(pictures)
    learned = await parts.desk.learn([Lesson(*each) for each in zip(pictures, labels, small, strict=True)])
    return LearnedShape.model_validate(learned)


def _one_each(labels: Sequence[str], count: int) -> list[str]:
    clean = [clean_label(label) for label in labels]
    if len(clean) not in (1, count):
        raise BadInput(f"give one label for all pictures, or one for each: {count} pictures, {len(clean)} labels")
    return list(repeat(clean[0], count)) if len(clean) == 1 else clean


@router.post("/predict", tags=["ask"], responses=problems(409, 413, 422))
async def predict(
    parts: PartsHere,
    image: Images,
    top: Annotated[int, Query(ge=1, le=100, description="How many labels to give for each.")] = 5,
    threshold: Annotated[float | None, Query(ge=0, le=1, description="Below this score it is `unknown`.")] = None,
    error_rate: Annotated[
        float | None, Query(ge=0, lt=1, description="At most such a share of held-out samples is answered wrongly.")
    ] = None,
) -> Answers:
    """Answers for pictures, during a sleep too."""
    if threshold is not None and error_rate is not None:
        raise BadInput("give a threshold or an error rate, not both")
    answered = await parts.desk.predict(await parts.uploads.read(image), Manner(top, threshold, error_rate))
    answers = [
        Answer(
            label=one.label,
            score=one.score,
            known=one.known,
            top=[Score(label=label, score=score) for label, score in one.top],
        )
        for one in answered.predictions
    ]
    return Answers(predictions=answers, generation=answered.generation)


@router.get("/classes", tags=["classes"])
async def classes(parts: PartsHere) -> ClassList:
    """All classes, oldest first."""
    return ClassList(classes=await parts.desk.look(_classes))


def _classes(learner: Siesta) -> list[ClassShape]:
    pictures = learner.store.thumbnails.by_class()
    return [ClassShape(**vars(record), thumbnails=pictures.get(record.id, [])) for record in learner.store.classes()]


def _class(learner: Siesta, class_id: int) -> ClassShape:
    for found in _classes(learner):
        if found.id == class_id:
            return found
    raise Problem(404, f"there is no class {class_id}: it was never taught, merged or forgotten")


@router.patch("/classes/{class_id}", tags=["classes"], responses=problems(404, 409, 422))
async def rename(parts: PartsHere, class_id: Id, wanted: NewLabel) -> ClassShape:
    """Gives a class another name."""
    label = clean_label(wanted.label)

    def work(learner: Siesta) -> ClassShape:
        old = _class(learner, class_id)
        if old.label == label:
            return old
        if any(other.label == label for other in learner.store.classes()):
            raise Problem(409, f"there is a class '{label}' already: merge the two")
        learner.rename(old.label, label)
        return _class(learner, class_id)

    return await parts.desk.change(work)


@router.post("/classes/{class_id}/merge", tags=["classes"], responses=problems(404, 409, 422))
async def merge(parts: PartsHere, class_id: Id, wanted: Merge) -> ClassShape:
    """Makes one class of two: the one that stays is the answer."""

    def work(learner: Siesta) -> ClassShape:
        learner.merge(_class(learner, class_id).label, _class(learner, wanted.into).label)
        return _class(learner, wanted.into)

    return await parts.desk.change(work)


@router.delete("/classes/{class_id}", tags=["classes"], status_code=204, responses=problems(404, 409, 422))
async def forget(parts: PartsHere, class_id: Id) -> None:
    """Forgets a class: samples, thumbnails, means, in every file."""
    await parts.desk.change(lambda learner: learner.forget(_class(learner, class_id).label))


@router.patch("/samples/{sample_id}", tags=["samples"], responses=problems(404, 409, 422))
async def correct(parts: PartsHere, sample_id: Id, wanted: NewLabel) -> Correction:
    """Teaches a sample anew under another label, in the place of the old one."""
    label = clean_label(wanted.label)

    def work(learner: Siesta) -> Correction:
        _check_sample(learner, sample_id)
        picture = learner.store.thumbnails.get(sample_id)
        new = learner.correct(sample_id, label)
        if picture is not None:
            learner.store.keep_thumbnails({new: picture})
        return Correction(id=new)

    return await parts.desk.change(work)


@router.delete("/samples/{sample_id}", tags=["samples"], status_code=204, responses=problems(404, 409, 422))
async def forget_sample(parts: PartsHere, sample_id: Id) -> None:
    """Forgets one sample."""

    def work(learner: Siesta) -> None:
        _check_sample(learner, sample_id)
        learner.forget_sample(sample_id)

    await parts.desk.change(work)


def _check_sample(learner: Siesta, sample_id: int) -> None:
    try:
        learner.store.samples.class_of(sample_id)
    except BadInput as error:
        raise Problem(404, str(error)) from None


@router.get(
    "/samples/{sample_id}/thumbnail",
    tags=["samples"],
    response_class=Response,
    responses={
        200: {"content": {"image/webp": {"schema": {"type": "string", "format": "binary"}}}, "description": "It."},
        304: {"description": "The one that was seen before."},
        **problems(404, 422),
    },
)
async def thumbnail(request: Request, parts: PartsHere, sample_id: Id) -> Response:
    """A small picture of what was taught."""
    picture = await parts.desk.look(lambda learner: learner.store.thumbnails.get(sample_id))
    if picture is None:
        raise Problem(404, f"there is no picture of sample {sample_id}")
    tag = f'"{sample_id}"'  # an id is never given twice; asked for every time, for it may be forgotten
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(picture, headers=headers, media_type="image/webp")
