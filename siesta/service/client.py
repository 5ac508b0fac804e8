"""Python client of the HTTP API with typed results; it does not need torch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import httpx
import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput, SiestaError
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


class RequestRefused(SiestaError):
    """Request that the service answered with a problem; the message is the problem's detail.

    Attributes:
        status: HTTP status of the response.
        retry_after: Seconds to wait before the request is sent again, None if the service does not say.
        safe: How many images of a learn request were stored before it failed, None if unknown.
        applied: Whether the change was made all the same, so that it must not be sent again.
        sample: Id of the sample that a change has made which was applied, None if it made none.
    """

    def __init__(self, response: httpx.Response) -> None:
        """Read the problem in a response."""
        try:
            problem = response.json()
            detail = str(problem["detail"])
        except (ValueError, TypeError, KeyError):  # the response of a proxy, for example
            problem = {}
            detail = f"{response.url} answered with status {response.status_code}"
        super().__init__(detail)
        self.status = response.status_code
        self.safe = problem.get("safe")
        self.applied = bool(problem.get("applied"))
        self.sample = problem.get("sample")
        retry_after = response.headers.get("retry-after", "")
        self.retry_after = float(retry_after) if retry_after.isdecimal() else None


class Client:
    """Client of one service; usable as a context manager, which closes its connections.

    Example:
        >>> birds = Client("http://127.0.0.1:8000")
        >>> birds.learn(["robin1.jpg", "robin2.jpg"], "robin")  # doctest: +SKIP
        [1, 2]
        >>> birds.predict("other.jpg").label  # doctest: +SKIP
        'robin'
        >>> birds.close()
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 60.0) -> None:
        """Create a client; it connects with the first request.

        Args:
            url: Address of the service, such as http://127.0.0.1:8000.
            token: Token, where the service needs one.
            timeout: Seconds to wait for a response.
        """
        if token is not None and not (token.isascii() and token.isprintable()):
            raise BadInput("a token is one line of ASCII characters: give it as `siesta token new` showed it")
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=_parse_url(url), headers=headers, timeout=timeout)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- learn and predict ----------------------------------------------------------------------------------------

    def learn(self, images: ImageFile | Sequence[ImageFile], labels: str | Sequence[str]) -> list[int]:
        """Learn images with one label for all or one for each; return the ids of their samples."""
        body = self._send("POST", "/v1/learn", files=_image_fields(images), data={"label": _check_labels(labels)})
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
        body = self._send("POST", "/v1/predict", files=_image_fields(images), params=query)
        return PredictResponse.model_validate_json(body).predictions

    def reject(self, image: ImageFile, labels: str | Sequence[str]) -> list[int]:
        """Say that labels are wrong for an image; return ids, each of which `forget_sample` takes back."""
        body = self._send("POST", "/v1/reject", files=_image_fields(image), data={"label": _check_labels(labels)})
        return RejectResponse.model_validate_json(body).ids

    def learn_vectors(self, vectors: Vectors, labels: str | Sequence[str]) -> list[int]:
        """Learn vectors with one label for all or one for each; return the ids of their samples."""
        request = {"vectors": _number_lists(vectors), "labels": _check_labels(labels)}
        return LearnResponse.model_validate_json(self._send("POST", "/v1/vectors/learn", json=request)).ids

    def reject_vectors(self, vectors: Vectors, labels: str | Sequence[str]) -> list[int]:
        """Say that labels are wrong for vectors, as `reject` does for an image."""
        request = {"vectors": _number_lists(vectors), "labels": _check_labels(labels)}
        return RejectResponse.model_validate_json(self._send("POST", "/v1/vectors/reject", json=request)).ids

    def predict_vectors(
        self, vectors: Vectors, top: int = 5, *, threshold: float | None = None, error_rate: float | None = None
    ) -> list[PredictionResponse]:
        """Predict the label of each vector, in order; the options are those of `predict_many`."""
        options = _without_none(top=top, threshold=threshold, error_rate=error_rate)
        body = self._send("POST", "/v1/vectors/predict", json={"vectors": _number_lists(vectors), **options})
        return PredictResponse.model_validate_json(body).predictions

    # -- classes and samples --------------------------------------------------------------------------------------

    def classes(self) -> list[ClassResponse]:
        """Return all classes, oldest first."""
        return ClassListResponse.model_validate_json(self._send("GET", "/v1/classes")).classes

    def rename(self, class_id: int, label: str) -> ClassResponse:
        """Rename a class."""
        body = self._send("PATCH", f"/v1/classes/{class_id}", json={"label": _check_label(label)})
        return ClassResponse.model_validate_json(body)

    def merge(self, class_id: int, into: int) -> ClassResponse:
        """Merge a class into another, which is returned."""
        body = self._send("POST", f"/v1/classes/{class_id}/merge", json={"into": into})
        return ClassResponse.model_validate_json(body)

    def forget(self, class_id: int) -> None:
        """Forget a class."""
        self._send("DELETE", f"/v1/classes/{class_id}")

    def correct(self, sample_id: int, label: str) -> int:
        """Learn a sample again under another label; return its new id."""
        body = self._send("PATCH", f"/v1/samples/{sample_id}", json={"label": _check_label(label)})
        return CorrectionResponse.model_validate_json(body).id

    def forget_sample(self, sample_id: int) -> None:
        """Forget one sample, or take a rejection back."""
        self._send("DELETE", f"/v1/samples/{sample_id}")

    def thumbnail(self, sample_id: int) -> bytes:
        """Return the thumbnail of a sample as WebP."""
        return self._send("GET", f"/v1/samples/{sample_id}/thumbnail")

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
        return SleepStatusResponse.model_validate_json(self._send("POST", "/v1/sleep", json=request))

    def sleep_status(self) -> SleepStatusResponse:
        """Return the status of the last sleep."""
        return SleepStatusResponse.model_validate_json(self._send("GET", "/v1/sleep"))

    def wake(self) -> SleepStatusResponse:
        """End the sleep after its present batch; its result so far is kept."""
        return SleepStatusResponse.model_validate_json(self._send("DELETE", "/v1/sleep"))

    def generations(self) -> list[GenerationResponse]:
        """Return the generations of weights that are kept, oldest first."""
        return GenerationListResponse.model_validate_json(self._send("GET", "/v1/generations")).generations

    def use(self, number: int) -> list[GenerationResponse]:
        """Activate the weights of a generation; return all generations."""
        body = self._send("POST", f"/v1/generations/{number}/use")
        return GenerationListResponse.model_validate_json(body).generations

    # -- the service as a whole -----------------------------------------------------------------------------------

    def info(self) -> InfoResponse:
        """Return the contents, the cost and the parts of the learner, and the limits of the service."""
        return InfoResponse.model_validate_json(self._send("GET", "/v1/info"))

    def events(self) -> Iterator[SleepStatusResponse | ChangedEvent]:
        """Yield the status of the sleep and changes of the learner until the service stops."""
        with self._connection_errors(), self._http.stream("GET", "/v1/events") as response:
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

    @contextmanager
    def _connection_errors(self) -> Iterator[None]:
        try:
            yield
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise BadInput(
                f"the service at {self._http.base_url} does not answer ({reason}): check that it is running"
            ) from error

    def _send(self, method: str, path: str, **options: Any) -> bytes:
        with self._connection_errors():
            response = self._http.request(method, path, **options)
        if not response.is_success:
            raise RequestRefused(response)
        return response.content


def _parse_url(url: str) -> httpx.URL:
    with suppress(httpx.InvalidURL):
        parsed = httpx.URL(url)
        if parsed.scheme in ("http", "https") and parsed.host:
            return parsed
    raise BadInput(f"'{url}' is not the address of a service: write it like http://127.0.0.1:8000")


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
