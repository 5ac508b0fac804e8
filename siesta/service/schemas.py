"""JSON bodies of the HTTP API: what the service accepts and returns, and what its client reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from siesta.sleep.binomial import interval_of

__all__ = [
    "ChangedEvent",
    "ClassListResponse",
    "ClassResponse",
    "CorrectionResponse",
    "GenerationListResponse",
    "GenerationResponse",
    "InfoBackbone",
    "InfoBytes",
    "InfoCodec",
    "InfoHeldOut",
    "InfoLimits",
    "InfoPolicy",
    "InfoResponse",
    "InfoSamples",
    "InfoSleepNeed",
    "LabelRequest",
    "LabelScore",
    "LearnResponse",
    "LearnVectorsRequest",
    "MergeRequest",
    "PredictResponse",
    "PredictVectorsRequest",
    "PredictionResponse",
    "ProblemDetails",
    "RejectResponse",
    "SessionRequest",
    "SleepProgressResponse",
    "SleepReportResponse",
    "SleepRequest",
    "SleepStatusResponse",
]

_LARGEST_ID = 2**53 - 1  # the largest integer that every JSON client represents exactly


def _none_if_not_finite(value: Any) -> Any:
    """Return None for NaN and infinity, which JSON cannot represent."""
    return value if not isinstance(value, float) or math.isfinite(value) else None


MaybeNumber = Annotated[float | None, BeforeValidator(_none_if_not_finite)]
Vectors = Annotated[
    list[list[float]],
    Field(min_length=1, max_length=1024, description="Vectors of one length.", examples=[[[0.5, -1.0]]]),
]
LabelText = Annotated[str, Field(min_length=1, max_length=200, examples=["robin"])]


class _RequestBody(BaseModel):
    """Base of request bodies: unknown keys are refused and types are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _ResponseBody(BaseModel):
    """Base of response bodies, which are read from attributes of the library's objects."""

    model_config = ConfigDict(from_attributes=True)


class ProblemDetails(BaseModel):
    """Error in the form of RFC 9457."""

    type: str
    title: str
    status: int
    detail: str = Field(description="One sentence that can be shown to the user.")
    safe: int | None = Field(None, description="How many images of the request were stored before the failure.")
    applied: bool | None = Field(None, description="Whether the change was made all the same: do not send it again.")
    sample: int | None = Field(None, description="Id of the sample that a change has made which was applied.")


class LearnVectorsRequest(_RequestBody):
    """Vectors with one label for all, or one for each."""

    vectors: Vectors
    labels: Annotated[list[LabelText], Field(min_length=1)]


class PredictVectorsRequest(_RequestBody):
    """Vectors to predict, and options as those of `/v1/predict`."""

    vectors: Vectors
    top: Annotated[int, Field(ge=1, le=100, description="Number of labels for each vector.")] = 5
    threshold: Annotated[float, Field(ge=0, le=1)] | SkipJsonSchema[None] = None
    error_rate: Annotated[float, Field(gt=0, lt=1)] | SkipJsonSchema[None] = None


class LearnResponse(_ResponseBody):
    """Ids of the stored samples and the generation that computed their features."""

    ids: list[int] = Field(examples=[[17, 18]])
    generation: int


class RejectResponse(_ResponseBody):
    """Ids of the rejections, in order; `DELETE /v1/samples/{id}` takes one back."""

    ids: list[int] = Field(examples=[[19, 20]])


class LabelScore(_ResponseBody):
    """Label with its probability."""

    label: str
    score: float


class PredictionResponse(_ResponseBody):
    """Prediction for one image; `label` is "unknown" where `known` is false."""

    label: str
    score: float
    known: bool
    familiarity: float = Field(1.0, description="How certain it is and how familiar the image looks, 0..1.")
    top: list[LabelScore]


class PredictResponse(_ResponseBody):
    """One prediction for each image, in order."""

    predictions: list[PredictionResponse]
    generation: int


class ClassResponse(_ResponseBody):
    """Class with its counts of samples, the ids of its newest samples that have a thumbnail, and its rejections."""

    id: int
    label: str
    taught: int
    stored: int
    thumbnails: list[int] = []
    rejections: list[int] = Field([], description="Ids of the rejections of this class, oldest first.")


class ClassListResponse(_ResponseBody):
    """All classes, oldest first."""

    classes: list[ClassResponse]


class LabelRequest(_RequestBody):
    """New label of a class or sample."""

    label: LabelText


class MergeRequest(_RequestBody):
    """Id of the class that the other is merged into."""

    into: Annotated[int, Field(ge=1, le=_LARGEST_ID, examples=[2])]


class CorrectionResponse(_ResponseBody):
    """New id of a sample that was learned again under another label."""

    id: int


class SleepRequest(_RequestBody):
    """Budget of a sleep, at most one of `updates`, `seconds` and `until`, and its rehearsal policy.

    Without a budget it sleeps in rounds until held-out samples stop gaining, or up to a ceiling.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "oneOf": [
                {"required": ["updates"]},
                {"required": ["seconds"]},
                {"required": ["until"]},
                {"not": {"anyOf": [{"required": ["updates"]}, {"required": ["seconds"]}, {"required": ["until"]}]}},
            ],
            "examples": [{}, {"seconds": 60}, {"updates": 5000, "policy": "balanced_uniform"}, {"until": "06:30"}],
        },
    )
    updates: Annotated[int, Field(ge=1, le=10**12)] | SkipJsonSchema[None] = None
    seconds: Annotated[float, Field(gt=0, le=10**7, allow_inf_nan=False)] | SkipJsonSchema[None] = None
    until: Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")] | SkipJsonSchema[None] = None
    policy: str | SkipJsonSchema[None] = None


class SleepProgressResponse(_ResponseBody):
    """Progress of a sleep after its last batch.

    In a sleep without a budget, `round` counts from 1 and `seconds_left` is the time to the ceiling; else `round` is 0.
    """

    updates: int
    fraction: float
    loss: MaybeNumber
    rate: float
    updates_per_second: MaybeNumber
    seconds_left: MaybeNumber
    round: int = 0


class SleepReportResponse(_ResponseBody):
    """Summary of a finished sleep: its cost and its effect."""

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
    interval_after: tuple[float, float] | None = Field(None, description="95 % interval of `accuracy_after`.")
    used: bool
    rounds: int = 1
    ended: str = Field("budget", description="Why it ended: budget, interrupted, no_gain, ceiling or passes.")
    optimistic: bool = Field(False, description="Whether the held-out samples also decided about the weights.")
    judge: str | None = Field(None, description="Name of the folder of images that took the place of held-out samples.")

    @classmethod
    def from_stored(cls, report: Mapping[str, Any], **extra: Any) -> SleepReportResponse:
        """Return the summary for a stored report.

        Stored reports are not covered by a checksum, so missing entries are filled with zero or None.

        Args:
            report: Report as the store keeps it.
            extra: Fields that replace or complete those of the report.
        """
        zeros = dict.fromkeys(("generation", "updates", "seconds", "samples", "classes", "new_classes", "held_out"), 0)
        nulls = dict.fromkeys(("loss_before", "loss_after", "accuracy_before", "accuracy_after"))
        policy = (report.get("settings") or {}).get("policy")
        interval = interval_of(report.get("accuracy_after"), report.get("held_out") or 0)
        known = {"interrupted": False, "used": True, "policy": policy, "interval_after": interval}
        return cls.model_validate({**zeros, **nulls, **known, **report, **extra})


class SleepStatusResponse(_ResponseBody):
    """Status of the last sleep."""

    state: Literal["never", "waiting", "asleep", "paused", "done", "failed", "killed"]
    running: bool
    words: str
    started: str | None
    progress: SleepProgressResponse | None
    report: SleepReportResponse | None


class GenerationResponse(_ResponseBody):
    """Generation of weights that is kept on disk."""

    number: int
    made: str
    in_use: bool
    report: SleepReportResponse | None


class GenerationListResponse(_ResponseBody):
    """Generations that are kept on disk, oldest first."""

    generations: list[GenerationResponse]


class ChangedEvent(_ResponseBody):
    """Data of the event `changed`."""

    revision: int
    generation: int


class SessionRequest(_RequestBody):
    """Token that a browser exchanges for a cookie."""

    token: Annotated[str, Field(max_length=200, examples=["siesta_..."])]


class InfoSamples(_ResponseBody):
    """Number of stored samples, and how many fit into the budget without thumbnails."""

    stored: int
    capacity: int


class InfoBytes(_ResponseBody):
    """Sizes in bytes: samples with thumbnails, the budget, one sample, all thumbnails, all files of the learner."""

    used: int
    allowed: int
    a_sample: int
    thumbnails: int
    on_disk: int


class InfoHeldOut(_ResponseBody):
    """Held-out samples that the active generation was evaluated on, its accuracy, and the 95 % interval of that."""

    samples: int
    accuracy: float | None
    interval: tuple[float, float] | None = None
    optimistic: bool = Field(False, description="Whether these samples also decided about the weights.")
    least_error_rate: float | None = Field(None, description="The smallest `error_rate` of `/v1/predict`, if any.")


class InfoSleepNeed(_ResponseBody):
    """Whether a sleep is due, and how many updates and seconds a sleep without a budget takes; null where unknown."""

    due: bool
    new_classes: int
    new_samples: int
    least_updates: int
    most_updates: int
    least_seconds: float | None
    most_seconds: float | None
    words: str


class InfoCodec(_ResponseBody):
    """Codec, its error on the images it was fitted on, and its error on recent images."""

    name: str
    relative_error: float
    error_lately: MaybeNumber
    drifted: bool


class InfoBackbone(_ResponseBody):
    """Network, its cut, and the side of its images or the length of its vectors."""

    name: str
    cut: int
    image_size: int | None
    features: int | None = Field(None, description="Length of the vectors that the learner takes in place of images.")


class InfoPolicy(_ResponseBody):
    """Rehearsal policy with a short description."""

    name: str
    words: str


class InfoLimits(_ResponseBody):
    """Limits on requests."""

    body_bytes: int
    pixels: int
    images: int
    queue: int
    seconds: float


class InfoResponse(_ResponseBody):
    """Contents, cost and parts of the learner, and limits of the service."""

    name: str
    version: str
    generation: int
    samples: InfoSamples
    bytes: InfoBytes
    classes: int
    held_out: InfoHeldOut
    codec: InfoCodec
    backbone: InfoBackbone
    sleep_need: InfoSleepNeed
    sleeps: list[SleepReportResponse]
    policies: list[InfoPolicy]
    default_policy: str
    thumbnails: bool
    scopes: list[Literal["ask", "teach"]]
    limits: InfoLimits
