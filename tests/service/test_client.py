"""The Python client without a service, and with responses that are not the service's own."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from siesta.errors import BadInput
from siesta.service.client import Client, RequestRefused


def test_a_service_that_does_not_answer_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}") as client:
        with pytest.raises(BadInput, match=r"does not answer .*: check that it is running"):
            client.classes()
        with pytest.raises(BadInput, match="does not answer"):
            next(client.events())


def test_a_missing_image_file_is_named(tmp_path: Path) -> None:
    with Client("http://127.0.0.1:1") as client, pytest.raises(BadInput, match=r"no image at .*none\.jpg"):
        client.learn(tmp_path / "none.jpg", "robin")


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "birds.example", "http://", "http://a:b", "ftp://birds.example", ""])
def test_an_invalid_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(BadInput, match="is not the address of a service: write it like http://"):
        Client(url)


@pytest.mark.parametrize("token", ["sïesta", "siesta_x\n", "siesta_\0"])
def test_an_invalid_token_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(BadInput, match="a token is one line of ASCII characters") as caught:
        Client("http://127.0.0.1:1", token=token)
    assert token not in str(caught.value)


@pytest.mark.parametrize("label", [5, None, b"robin", "\udc80", ["robin", 5]])
def test_a_label_that_is_not_text_is_refused(label: Any) -> None:
    with Client("http://127.0.0.1:1") as client:
        with pytest.raises(BadInput, match="a label is text, not"):
            client.learn(b"picture", label)
        with pytest.raises(BadInput, match="a label is text, not"):
            client.rename(1, label)


def test_a_response_that_is_no_problem_has_a_message_too() -> None:
    request = httpx.Request("GET", "http://proxy.example/v1/classes")
    refused = RequestRefused(httpx.Response(502, text="<html>Bad Gateway</html>", request=request))
    assert (str(refused), refused.status, refused.retry_after) == (f"{request.url} answered with status 502", 502, None)
    ours = httpx.Response(503, json={"detail": "full", "safe": 3}, headers={"Retry-After": "7"}, request=request)
    assert (str(RequestRefused(ours)), RequestRefused(ours).safe, RequestRefused(ours).retry_after) == ("full", 3, 7.0)
    assert (refused.applied, RequestRefused(ours).applied, RequestRefused(ours).sample) == (False, False, None)
    made = RequestRefused(httpx.Response(500, json={"detail": "x", "applied": True, "sample": 8}, request=request))
    assert (made.applied, made.sample, made.retry_after) == (True, 8, None)
