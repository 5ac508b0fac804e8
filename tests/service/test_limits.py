"""How much may come in: more is refused before it is read, and says so."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import httpx
import pytest

from siesta.service.client import Client, Refused
from tests.service.conftest import Serve
from tests.service.running import Running, answer_on, half_sent, multipart, picture

LIMITS = ("--max-body", "60KB", "--max-images", "3", "--max-pixels", "3000", "--queue", "1", "--timeout", "3")


@pytest.fixture(scope="module")
def running(serve: Serve) -> Running:
    return serve(*LIMITS, "--no-thumbnails")


@pytest.fixture
def client(running: Running) -> Iterator[Client]:
    with running.client() as made:
        yield made


def test_limits_are_told(client: Client) -> None:
    assert client.info().limits.model_dump() == {
        "body_bytes": 60_000,
        "pixels": 3000,
        "images": 3,
        "queue": 1,
        "seconds": 3.0,
    }


def test_too_many_bytes_are_refused_whatever_the_header_says(running: Running) -> None:
    body, kind = multipart(("image", bytes(70_000)), ("label", "red"))
    said = httpx.post(f"{running.url}/v1/learn", content=body, headers={"content-type": kind})
    assert (said.status_code, said.json()["detail"]) == (413, "a request has at most 60,000 bytes: send it in parts")

    def parts() -> Iterator[bytes]:  # without a length
        for start in range(0, len(body), 10_000):
            yield body[start : start + 10_000]

    unsaid = httpx.post(f"{running.url}/v1/learn", content=parts(), headers={"content-type": kind})
    assert (unsaid.status_code, unsaid.json()["status"]) == (413, 413)


def test_too_many_pictures_and_too_many_pixels_are_refused(client: Client) -> None:
    with pytest.raises(Refused, match="at most 3 pictures, this one 4") as caught:
        client.learn([picture("red")] * 4, "red")
    assert caught.value.status == 413
    with pytest.raises(Refused, match=r"image 1 \(picture\) has more than 3,000 pixels") as caught:
        client.learn(picture("red", size=(60, 60)), "red")
    assert caught.value.status == 422
    assert len(client.learn([picture("red", number) for number in range(3)], "red")) == 3
    assert client.classes()[0].thumbnails == []


def test_when_the_queue_is_full_others_are_told_to_come_back(running: Running, client: Client) -> None:
    body, kind = multipart(("image", picture("blue")), ("label", "blue"))
    first = half_sent(running, "/v1/learn", body, kind)
    with pytest.raises(Refused, match="waiting already: try again") as caught:
        client.predict(picture("blue"))
    assert (caught.value.status, caught.value.retry_after) == (429, 1.0)
    assert client.info().samples.stored > 0, "what needs no picture is answered"
    first.sendall(body[len(body) // 2 :])
    assert answer_on(first)[0] == 200
    first.close()
    assert client.predict(picture("blue")).label == "blue"


def test_a_request_that_does_not_come_to_an_end_is_given_up(running: Running, client: Client) -> None:
    body, kind = multipart(("image", picture("blue")), ("label", "never"))
    start = time.monotonic()
    with half_sent(running, "/v1/learn", body, kind) as slow:
        status, answer = answer_on(slow)
    assert status == 503 and "longer than 3 s" in json.loads(answer)["detail"]
    assert 2 < time.monotonic() - start < 20
    assert "never" not in {some.label for some in client.classes()}
    assert client.predict(picture("blue"))
