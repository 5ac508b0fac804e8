"""The client where there is no service, or none of ours."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from siesta.errors import BadInput
from siesta.service.client import Client, Refused


def test_a_service_that_is_not_there_is_said_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}") as client:
        with pytest.raises(BadInput, match=r"does not answer .*: is it running"):
            client.classes()
        with pytest.raises(BadInput, match="does not answer"):
            next(client.events())


def test_a_picture_that_is_not_there_is_named(tmp_path: Path) -> None:
    with Client("http://127.0.0.1:1") as client, pytest.raises(BadInput, match=r"no picture at .*none\.jpg"):
        client.learn(tmp_path / "none.jpg", "robin")


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "birds.example", "http://", "http://a:b", "ftp://birds.example", ""])
def test_what_is_no_address_is_said_at_once(url: str) -> None:
    with pytest.raises(BadInput, match="is no address of a service: write it like http://"):
        Client(url)


@pytest.mark.parametrize("token", ["sïesta", "siesta_x\n", "siesta_\0"])
def test_what_is_no_token_is_said_and_not_repeated(token: str) -> None:
    with pytest.raises(BadInput, match="a token is one line of plain letters") as caught:
        Client("http://127.0.0.1:1", token=token)
    assert token not in str(caught.value)


@pytest.mark.parametrize("label", [5, None, b"robin", "\udc80", ["robin", 5]])
def test_a_label_that_is_no_text_is_said(label: Any) -> None:
    with Client("http://127.0.0.1:1") as client:
        with pytest.raises(BadInput, match="a label is text, not"):
            client.learn(b"picture", label)
        with pytest.raises(BadInput, match="a label is text, not"):
            client.rename(1, label)


def test_an_error_of_somebody_else_has_a_sentence_too() -> None:
    request = httpx.Request("GET", "http://proxy.example/v1/classes")
    refused = Refused(httpx.Response(502, text="<html>Bad Gateway</html>", request=request))
    assert (str(refused), refused.status, refused.retry_after) == (f"{request.url} answered 502", 502, None)
    ours = httpx.Response(503, json={"detail": "full", "safe": 3}, headers={"Retry-After": "7"}, request=request)
    assert (str(Refused(ours)), Refused(ours).safe, Refused(ours).retry_after) == ("full", 3, 7.0)
