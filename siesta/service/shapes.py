"""What goes over the wire, as the service writes it and its client reads it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

__all__ = [
    "Answer",
    "Answers",
    "Budget",
    "Changed",
    "ClassList",
    "ClassShape",
    "Correction",
    "GenerationList",
    "GenerationShape",
    "Info",
    "LearnedShape",
    "Merge",
    "NewLabel",
    "Password",
    "ProblemShape",
    "Report",
    "Score",
    "SleepProgress",
    "SleepShape",
]

_LARGEST = 2**53 - 1  # that every client can count to


def _finite(value: Any) -> Any:
    """JSON has no word for infinity."""
    return value if not isinstance(value, float) or math.isfinite(value) else None


MaybeNumber = Annotated[float | None, BeforeValidator(_finite)]
LabelText = Annotated[str, Field(min_length=1, max_length=200, examples=["robin"])]


class _Given(BaseModel):
    """What a client sends: a word that we do not know is a mistake of its, and a number is no text and no truth."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _Answered(BaseModel):
    """What the service answers."""

    model_config = ConfigDict(from_attributes=True)


class ProblemShape(BaseModel):
    """An error, after RFC 9457."""

    type: str
    title: str
    status: int
    detail: str = Field(description="One sentence to show.")
    safe: int | None = Field(None, description="How many pictures of a lesson are stored all the same.")


class LearnedShape(_Answered):
    """What was stored."""

    ids: list[int] = Field(examples=[[17, 18]])
    generation: int


class Score(_Answered):
    """A label and its probability."""

    label: str
    score: float


class Answer(_Answered):
    """The best label for a picture; where `known` is false, it is too unsure to be given."""

    label: str
    score: float
    known: bool
    top: list[Score]


class Answers(_Answered):
    """One for each picture, in order."""

    predictions: list[Answer]
    generation: int


class ClassShape(_Answered):
    """A class: samples ever taught, samples stored, and the newest of them that have a thumbnail."""

    id: int
    label: str
    taught: int
    stored: int
    thumbnails: list[int] = []


class ClassList(_Answered):
    """All classes, oldest first."""

    classes: list[ClassShape]


class NewLabel(_Given):
    """What something is called from now on."""

    label: LabelText


class Merge(_Given):
    """The class that stays."""

    into: Annotated[int, Field(ge=1, le=_LARGEST, examples=[2])]


class Correction(_Answered):
    """A sample that was taught anew: its new id."""

    id: int


class Budget(_Given):
    """How long to sleep, by exactly one of `updates`, `seconds` and `until`; and what to rehearse."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "oneOf": [{"required": ["updates"]}, {"required": ["seconds"]}, {"required": ["until"]}],
            "examples": [{"seconds": 60}, {"updates": 5000, "policy": "balanced_uniform"}, {"until": "06:30"}],
        },
    )
    updates: Annotated[int, Field(ge=1, le=10**12)] | SkipJsonSchema[None] = None
    seconds: Annotated[float, Field(gt=0, le=10**7, allow_inf_nan=False)] | SkipJsonSchema[None] = None
    until: Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")] | SkipJsonSchema[None] = None
    policy: str | SkipJsonSchema[None] = None


class SleepProgress(_Answered):
    """Where a sleep stands after a batch."""

    updates: int
    fraction: float
    loss: MaybeNumber
    rate: float
    updates_per_second: MaybeNumber
    seconds_left: MaybeNumber


class Report(_Answered):
    """What a sleep spent and what it changed."""

    generation: int
    made: str | None = None
    policy: str | None = None
    updates: int
    seconds: float
    samples: int
    classes: int
    new_classes: int
    loss_before: MaybeNumber
    loss_after: MaybeNumber
    interrupted: bool
    held_out: int
    accuracy_before: float | None
    accuracy_after: float | None
    used: bool

    @classmethod
    def of(cls, report: Mapping[str, Any], **more: Any) -> Report:
        """What the store keeps about a sleep; reports are not vouched for, and what they lack is taken as nothing."""
        numbers = dict.fromkeys(
            ("generation", "updates", "seconds", "samples", "classes", "new_classes", "held_out"), 0
        )
        nothing = dict.fromkeys(("loss_before", "loss_after", "accuracy_before", "accuracy_after"))
        policy = (report.get("settings") or {}).get("policy")
        return cls.model_validate(
            {**numbers, **nothing, "interrupted": False, "used": True, "policy": policy, **report, **more}
        )


class SleepShape(_Answered):
    """How the last sleep stands."""

    state: Literal["never", "waiting", "asleep", "paused", "done", "failed", "killed"]
    running: bool
    words: str
    started: str | None
    progress: SleepProgress | None
    report: Report | None


class GenerationShape(_Answered):
    """Weights that are kept."""

    number: int
    made: str
    in_use: bool
    report: Report | None


class GenerationList(_Answered):
    """Weights that are kept, oldest first."""

    generations: list[GenerationShape]


class Changed(_Answered):
    """Data of the event `changed`."""

    revision: int
    generation: int


class Password(_Given):
    """A token that a browser shows once."""

    token: Annotated[str, Field(max_length=200, examples=["siesta_..."])]


class SampleRoom(_Answered):
    """Samples stored, and how many there is room for without thumbnails."""

    stored: int
    capacity: int


class Sizes(_Answered):
    """Bytes: of samples and thumbnails, of the budget, of one sample, of thumbnails, of all files."""

    used: int
    allowed: int
    a_sample: int
    thumbnails: int
    on_disk: int


class HeldOut(_Answered):
    """What the generation in use was judged by."""

    samples: int
    accuracy: float | None


class CodecShape(_Answered):
    """How samples are stored, and how well that suits what is taught lately."""

    name: str
    relative_error: float
    error_lately: MaybeNumber
    drifted: bool


class BackboneShape(_Answered):
    """The network."""

    name: str
    cut: int
    image_size: int


class PolicyShape(_Answered):
    """What a sleep may rehearse."""

    name: str
    words: str


class LimitsShape(_Answered):
    """How much may come in."""

    body_bytes: int
    pixels: int
    images: int
    queue: int
    seconds: float


class Info(_Answered):
    """What a learner knows, what it costs, what it is made of, and how it is served."""

    name: str
    version: str
    generation: int
    samples: SampleRoom
    bytes: Sizes
    classes: int
    held_out: HeldOut
    codec: CodecShape
    backbone: BackboneShape
    sleeps: list[Report]
    policies: list[PolicyShape]
    default_policy: str
    thumbnails: bool
    scopes: list[Literal["ask", "teach"]]
    limits: LimitsShape
