"""Limits on requests: what exceeds them is refused before it is read."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import httpx
import pytest

from siesta.service.client import Client, RequestRefused
from tests.service.conftest import StartServer
from tests.service.server_process import ServerProcess, make_image, multipart_body, read_response, send_half

LIMITS = ("--max-body", "60KB", "--max-images", "3", "--max-pixels", "3000", "--queue", "1", "--timeout", "3")


@pytest.fixture(scope="module")
def limited_server(start_server: StartServer) -> ServerProcess:
    return start_server(*LIMITS, "--no-thumbnails")


@pytest.fixture
def client(limited_server: ServerProcess) -> Iterator[Client]:
    with limited_server.client() as client:
        yield client


def test_info_has_the_limits(client: Client) -> None:
    assert client.info().limits.model_dump() == {
        "body_bytes": 60_000,
        "pixels": 3000,
        "images": 3,
        "queue": 1,
        "seconds": 3.0,
    }


def test_too_many_bytes_are_refused_whatever_the_header_says(limited_server: ServerProcess) -> None:
    body, content_type = multipart_body(("image", bytes(70_000)), ("label", "red"))
    declared = httpx.post(f"{limited_server.url}/v1/learn", content=body, headers={"content-type": content_type})
    assert (declared.status_code, declared.json()["detail"]) == (
        413,
        "a request has at most 60,000 bytes: send it in parts",
    )

    def chunks() -> Iterator[bytes]:  # sent without a Content-Length
        for start in range(0, len(body), 10_000):
            yield body[start : start + 10_000]

    chunked = httpx.post(f"{limited_server.url}/v1/learn", content=chunks(), headers={"content-type": content_type})
    assert (chunked.status_code, chunked.json()["status"]) == (413, 413)


def test_too_many_images_and_too_many_pixels_are_refused(client: Client) -> None:
    with pytest.raises(RequestRefused, match="at most 3 images, this one 4") as caught:
        client.learn([make_image("red")] * 4, "red")
    assert caught.value.status == 413
    with pytest.raises(RequestRefused, match=r"image 1 \(picture\) has more than 3,000 pixels") as caught:
        client.learn(make_image("red", size=(60, 60)), "red")
    assert caught.value.status == 422
    assert len(client.learn([make_image("red", number) for number in range(3)], "red")) == 3
    assert client.classes()[0].thumbnails == []


def test_when_the_queue_is_full_further_requests_have_to_retry(limited_server: ServerProcess, client: Client) -> None:
    body, content_type = multipart_body(("image", make_image("blue")), ("label", "blue"))
    first = send_half(limited_server, "/v1/learn", body, content_type)
    with pytest.raises(RequestRefused, match="waiting already: try again") as caught:
        client.predict(make_image("blue"))
    assert (caught.value.status, caught.value.retry_after) == (429, 1.0)
    assert client.info().samples.stored > 0, "requests without images are answered"
    first.sendall(body[len(body) // 2 :])
    assert read_response(first)[0] == 200
    first.close()
    assert client.predict(make_image("blue")).label == "blue"


def test_a_request_that_takes_too_long_is_ended(limited_server: ServerProcess, client: Client) -> None:
    body, content_type = multipart_body(("image", make_image("blue")), ("label", "never"))
    start = time.monotonic()
    with send_half(limited_server, "/v1/learn", body, content_type) as slow:
        status, answer = read_response(slow)
    assert status == 503 and "longer than 3 s" in json.loads(answer)["detail"]
    assert 2 < time.monotonic() - start < 20
    assert "never" not in {known.label for known in client.classes()}
    assert client.predict(make_image("blue"))
