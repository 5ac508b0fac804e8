"""Python client of the HTTP API with typed results; it does not need torch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput
from siesta.service.connection import Connection, RequestRefused
from siesta.service.schemas import (
    ChangedEvent,
    ClassListResponse,
    ClassResponse,
    CorrectionResponse,
    GenerationListResponse,
    GenerationResponse,
    InfoResponse,
    LearnResponse,
    PredictionResponse,
    PredictResponse,
    RejectResponse,
    SleepStatusResponse,
)

__all__ = ["Client", "ImageFile", "RequestRefused"]

ImageFile: TypeAlias = str | Path | bytes
Vectors: TypeAlias = npt.NDArray[Any] | Sequence[Sequence[float]]
"""Path of an image file, or its content."""


class Client(Connection):
    """Client of one service; usable as a context manager, which closes its connections.

    Example:
        >>> birds = Client("http://127.0.0.1:8000")
        >>> birds.learn(["robin1.jpg", "robin2.jpg"], "robin")  # doctest: +SKIP
        [1, 2]
        >>> birds.predict("other.jpg").label  # doctest: +SKIP
        'robin'
        >>> birds.close()
    """

    # -- learn and predict ----------------------------------------------------------------------------------------

    def learn(self, images: ImageFile | Sequence[ImageFile], labels: str | Sequence[str]) -> list[int]:
        """Learn images with one label for all or one for each; return the ids of their samples."""
        body = self.send("POST", "/v1/learn", files=_image_fields(images), data={"label": _check_labels(labels)})
        return LearnResponse.model_validate_json(body).ids

    def predict(
        self, image: ImageFile, top: int = 5, *, threshold: float | None = None, error_rate: float | None = None
    ) -> PredictionResponse:
        """Predict the label of an image."""
        return self.predict_many([image], top, threshold=threshold, error_rate=error_rate)[0]

    def predict_many(
        self,
        images: Sequence[ImageFile],
        top: int = 5,
        *,
        threshold: float | None = None,
        error_rate: float | None = None,
    ) -> list[PredictionResponse]:
        """Predict the label of each image, in order.

        Args:
            images: Image files.
            top: Number of labels to return for each image.
            threshold: Familiarity below which the label is "unknown".
            error_rate: Largest share of wrong labels among those given, with 95 % confidence; the rest is "unknown".
        """
        query = _without_none(top=top, threshold=threshold, error_rate=error_rate)
        body = self.send("POST", "/v1/predict", files=_image_fields(images), params=query)
        return PredictResponse.model_validate_json(body).predictions

    def reject(self, image: ImageFile, labels: str | Sequence[str]) -> list[int]:
        """Say that labels are wrong for an image; return ids, each of which `forget_sample` takes back."""
        body = self.send("POST", "/v1/reject", files=_image_fields(image), data={"label": _check_labels(labels)})
        return RejectResponse.model_validate_json(body).ids

    def learn_vectors(self, vectors: Vectors, labels: str | Sequence[str]) -> list[int]:
        """Learn vectors with one label for all or one for each; return the ids of their samples."""
        request = {"vectors": _number_lists(vectors), "labels": _check_labels(labels)}
        return LearnResponse.model_validate_json(self.send("POST", "/v1/vectors/learn", json=request)).ids

    def reject_vectors(self, vectors: Vectors, labels: str | Sequence[str]) -> list[int]:
        """Say that labels are wrong for vectors, as `reject` does for an image."""
        request = {"vectors": _number_lists(vectors), "labels": _check_labels(labels)}
        return RejectResponse.model_validate_json(self.send("POST", "/v1/vectors/reject", json=request)).ids

    def predict_vectors(
        self, vectors: Vectors, top: int = 5, *, threshold: float | None = None, error_rate: float | None = None
    ) -> list[PredictionResponse]:
        """Predict the label of each vector, in order; the options are those of `predict_many`."""
        options = _without_none(top=top, threshold=threshold, error_rate=error_rate)
        body = self.send("POST", "/v1/vectors/predict", json={"vectors": _number_lists(vectors), **options})
        return PredictResponse.model_validate_json(body).predictions

    # -- classes and samples --------------------------------------------------------------------------------------

    def classes(self) -> list[ClassResponse]:
        """Return all classes, oldest first."""
        return ClassListResponse.model_validate_json(self.send("GET", "/v1/classes")).classes

    def rename(self, class_id: int, label: str) -> ClassResponse:
        """Rename a class."""
        body = self.send("PATCH", f"/v1/classes/{class_id}", json={"label": _check_label(label)})
        return ClassResponse.model_validate_json(body)

    def merge(self, class_id: int, into: int) -> ClassResponse:
        """Merge a class into another, which is returned."""
        body = self.send("POST", f"/v1/classes/{class_id}/merge", json={"into": into})
        return ClassResponse.model_validate_json(body)

    def forget(self, class_id: int) -> None:
        """Forget a class."""
        self.send("DELETE", f"/v1/classes/{class_id}")

    def correct(self, sample_id: int, label: str) -> int:
        """Learn a sample again under another label; return its new id."""
        body = self.send("PATCH", f"/v1/samples/{sample_id}", json={"label": _check_label(label)})
        return CorrectionResponse.model_validate_json(body).id

    def forget_sample(self, sample_id: int) -> None:
        """Forget one sample, or take a rejection back."""
        self.send("DELETE", f"/v1/samples/{sample_id}")

    def thumbnail(self, sample_id: int) -> bytes:
        """Return the thumbnail of a sample as WebP."""
        return self.send("GET", f"/v1/samples/{sample_id}/thumbnail")

    # -- sleep ----------------------------------------------------------------------------------------------------

    def sleep(
        self,
        *,
        updates: int | None = None,
        seconds: float | None = None,
        until: str | None = None,
        policy: str | None = None,
    ) -> SleepStatusResponse:
        """Start a sleep with one budget, or with none until held-out samples stop gaining; return when it has begun.

        Args:
            updates: Number of samples to rehearse.
            seconds: Duration.
            until: Time of day on the service's clock, such as "06:30".
            policy: Rehearsal policy, the service's default if None.
        """
        request = _without_none(updates=updates, seconds=seconds, until=until, policy=policy)
        return SleepStatusResponse.model_validate_json(self.send("POST", "/v1/sleep", json=request))

    def sleep_status(self) -> SleepStatusResponse:
        """Return the status of the last sleep."""
        return SleepStatusResponse.model_validate_json(self.send("GET", "/v1/sleep"))

    def wake(self) -> SleepStatusResponse:
        """End the sleep after its present batch; its result so far is kept."""
        return SleepStatusResponse.model_validate_json(self.send("DELETE", "/v1/sleep"))

    def generations(self) -> list[GenerationResponse]:
        """Return the generations of weights that are kept, oldest first."""
        return GenerationListResponse.model_validate_json(self.send("GET", "/v1/generations")).generations

    def use(self, number: int) -> list[GenerationResponse]:
        """Activate the weights of a generation; return all generations."""
        body = self.send("POST", f"/v1/generations/{number}/use")
        return GenerationListResponse.model_validate_json(body).generations

    # -- the service as a whole -----------------------------------------------------------------------------------

    def info(self) -> InfoResponse:
        """Return the contents, the cost and the parts of the learner, and the limits of the service."""
        return InfoResponse.model_validate_json(self.send("GET", "/v1/info"))

    def events(self) -> Iterator[SleepStatusResponse | ChangedEvent]:
        """Yield the status of the sleep and changes of the learner until the service stops."""
        with self.errors(), self.http.stream("GET", "/v1/events") as response:
            if response.is_error:
                response.read()
                raise RequestRefused(response)
            event = ""
            for line in response.iter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    event = value
                elif field == "data":
                    model = SleepStatusResponse if event == "sleep" else ChangedEvent
                    yield model.model_validate(json.loads(value))


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _check_labels(labels: object) -> list[str]:
    if isinstance(labels, Iterable) and not isinstance(labels, str | bytes):
        return [_check_label(label) for label in labels]
    return [_check_label(labels)]


def _check_label(label: object) -> str:
    if isinstance(label, str):
        with suppress(UnicodeEncodeError):  # a lone surrogate
            label.encode()
            return label
    raise BadInput(f"a label is text, not {label!r}")


def _number_lists(vectors: Vectors) -> list[list[float]]:
    """Return vectors as JSON has them."""
    try:
        numbers: list[list[float]] = np.asarray(vectors, np.float64).tolist()
        json.dumps(numbers, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadInput(f"these are no vectors ({error}): give finite numbers, all vectors of one length") from error
    return numbers


def _image_fields(images: ImageFile | Sequence[ImageFile]) -> list[tuple[str, tuple[str, bytes]]]:
    files = [images] if isinstance(images, (str, Path, bytes)) else images
    return [("image", _read_image_file(file)) for file in files]


def _read_image_file(file: ImageFile) -> tuple[str, bytes]:
    """Return the name and the content of an image file."""
    if isinstance(file, bytes):
        return "picture", file
    try:
        return Path(file).name, Path(file).read_bytes()
    except OSError as error:
        raise BadInput(f"there is no image at {file}: check the path") from error
