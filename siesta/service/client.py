"""A service from Python: what its API can do, with types; it needs no torch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import httpx

from siesta.errors import BadInput, SiestaError
from siesta.service.shapes import (
    Answer,
    Answers,
    Changed,
    ClassList,
    ClassShape,
    Correction,
    GenerationList,
    GenerationShape,
    Info,
    LearnedShape,
    SleepShape,
)

__all__ = ["Client", "Picture", "Refused"]

Picture: TypeAlias = str | Path | bytes
"""A file's path, or what is in it."""


class Refused(SiestaError):
    """A request that the service did not do as wished; the sentence is its own.

    Attributes:
        status: Of its answer.
        retry_after: Seconds to wait before it is sent again, where the service says so.
        safe: How many pictures of a lesson are stored all the same.
    """

    def __init__(self, response: httpx.Response) -> None:
        """Reads the problem in an answer."""
        try:
            problem = response.json()
            words, safe = str(problem["detail"]), problem.get("safe")
        except (ValueError, TypeError, KeyError):  # not of our making
            words, safe = f"{response.url} answered {response.status_code}", None
        super().__init__(words)
        self.status, self.safe = response.status_code, safe
        after = response.headers.get("retry-after", "")
        self.retry_after = float(after) if after.isdecimal() else None


class Client:
    """One service; a `with` block closes its connections."""

    def __init__(self, url: str, token: str | None = None, timeout: float = 60.0) -> None:
        """Connects when it is first asked for something.

        Args:
            url: Where the service is, like http://127.0.0.1:8000.
            token: Where one is needed.
            timeout: Seconds that are waited for an answer.
        """
        if token is not None and not (token.isascii() and token.isprintable()):
            raise BadInput("a token is one line of plain letters: give it as `siesta token new` showed it")
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=_address(url), headers=headers, timeout=timeout)

    def close(self) -> None:
        """Ends its connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- teach and ask --------------------------------------------------------------------------------------------

    def learn(self, pictures: Picture | Sequence[Picture], labels: str | Sequence[str]) -> list[int]:
        """Teaches pictures, with one label for all or one for each; returns their samples' ids."""
        answer = self._send("POST", "/v1/learn", files=_files(pictures), data={"label": _labels(labels)})
        return LearnedShape.model_validate_json(answer).ids

    def predict(
        self, picture: Picture, top: int = 5, *, threshold: float | None = None, error_rate: float | None = None
    ) -> Answer:
        """The best label for a picture."""
        return self.predict_many([picture], top, threshold=threshold, error_rate=error_rate)[0]

    def predict_many(
        self,
        pictures: Sequence[Picture],
        top: int = 5,
        *,
        threshold: float | None = None,
        error_rate: float | None = None,
    ) -> list[Answer]:
        """The best labels for each picture, in order."""
        wanted = {"top": top, "threshold": threshold, "error_rate": error_rate}
        given = {name: value for name, value in wanted.items() if value is not None}
        answer = self._send("POST", "/v1/predict", files=_files(pictures), params=given)
        return Answers.model_validate_json(answer).predictions

    # -- what was taught ------------------------------------------------------------------------------------------

    def classes(self) -> list[ClassShape]:
        """All classes, oldest first."""
        return ClassList.model_validate_json(self._send("GET", "/v1/classes")).classes

    def rename(self, class_id: int, label: str) -> ClassShape:
        """Gives a class another name."""
        return ClassShape.model_validate_json(
            self._send("PATCH", f"/v1/classes/{class_id}", json={"label": _text(label)})
        )

    def merge(self, class_id: int, into: int) -> ClassShape:
        """Makes one class of two; returns the one that stays."""
        answer = self._send("POST", f"/v1/classes/{class_id}/merge", json={"into": into})
        return ClassShape.model_validate_json(answer)

    def forget(self, class_id: int) -> None:
        """Forgets a class."""
        self._send("DELETE", f"/v1/classes/{class_id}")

    def correct(self, sample_id: int, label: str) -> int:
        """Teaches a sample anew under another label; returns its new id."""
        answer = self._send("PATCH", f"/v1/samples/{sample_id}", json={"label": _text(label)})
        return Correction.model_validate_json(answer).id

    def forget_sample(self, sample_id: int) -> None:
        """Forgets one sample."""
        self._send("DELETE", f"/v1/samples/{sample_id}")

    def thumbnail(self, sample_id: int) -> bytes:
        """A small WebP of what was taught."""
        return self._send("GET", f"/v1/samples/{sample_id}/thumbnail")

    # -- sleep ----------------------------------------------------------------------------------------------------

    def sleep(
        self,
        *,
        updates: int | None = None,
        seconds: float | None = None,
        until: str | None = None,
        policy: str | None = None,
    ) -> SleepShape:
        """Lets it sleep within exactly one budget; returns when it has begun."""
        wanted = {"updates": updates, "seconds": seconds, "until": until, "policy": policy}
        given = {name: value for name, value in wanted.items() if value is not None}
        return SleepShape.model_validate_json(self._send("POST", "/v1/sleep", json=given))

    def sleep_status(self) -> SleepShape:
        """How its last sleep stands."""
        return SleepShape.model_validate_json(self._send("GET", "/v1/sleep"))

    def wake(self) -> SleepShape:
        """Wakes it up; what it has consolidated is kept."""
        return SleepShape.model_validate_json(self._send("DELETE", "/v1/sleep"))

    def generations(self) -> list[GenerationShape]:
        """Weights that are kept, oldest first."""
        return GenerationList.model_validate_json(self._send("GET", "/v1/generations")).generations

    def use(self, number: int) -> list[GenerationShape]:
        """Lets it answer with the weights of a generation."""
        return GenerationList.model_validate_json(self._send("POST", f"/v1/generations/{number}/use")).generations

    # -- as a whole -----------------------------------------------------------------------------------------------

    def info(self) -> Info:
        """What it knows, what it costs, what it is made of."""
        return Info.model_validate_json(self._send("GET", "/v1/info"))

    def events(self) -> Iterator[SleepShape | Changed]:
        """What changes, as it changes, for as long as the service runs."""
        with self._connected(), self._http.stream("GET", "/v1/events") as response:
            if response.is_error:
                response.read()
                raise Refused(response)
            name = ""
            for line in response.iter_lines():
                kind, _, value = line.partition(": ")
                if kind == "event":
                    name = value
                elif kind == "data":
                    shape = SleepShape if name == "sleep" else Changed
                    yield shape.model_validate(json.loads(value))

    @contextmanager
    def _connected(self) -> Iterator[None]:
        try:
            yield
        except httpx.HTTPError as error:
            words = str(error) or type(error).__name__
            raise BadInput(f"the service at {self._http.base_url} does not answer ({words}): is it running?") from error

    def _send(self, method: str, path: str, **request: Any) -> bytes:
        with self._connected():
            response = self._http.request(method, path, **request)
        if not response.is_success:
            raise Refused(response)
        return response.content


def _address(url: str) -> httpx.URL:
    with suppress(httpx.InvalidURL):
        address = httpx.URL(url)
        if address.scheme in ("http", "https") and address.host:
            return address
    raise BadInput(f"{url} is no address of a service: write it like http://127.0.0.1:8000")


def _labels(labels: object) -> list[str]:
    if isinstance(labels, Iterable) and not isinstance(labels, str | bytes):
        return [_text(label) for label in labels]
    return [_text(labels)]


def _text(label: object) -> str:
    """A label, if it is one."""
    if isinstance(label, str):
        with suppress(UnicodeEncodeError):  # half of a character that takes two
            label.encode()
            return label
    raise BadInput(f"a label is text, not {label!r}")


def _files(pictures: Picture | Sequence[Picture]) -> list[tuple[str, tuple[str, bytes]]]:
    some = [pictures] if isinstance(pictures, (str, Path, bytes)) else pictures
    return [("image", _file(picture)) for picture in some]


def _file(picture: Picture) -> tuple[str, bytes]:
    if isinstance(picture, bytes):
        return "picture", picture
    try:
        return Path(picture).name, Path(picture).read_bytes()
    except OSError as error:
        raise BadInput(f"there is no picture at {picture}") from error
