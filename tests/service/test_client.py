"""The client where there is no service, or none of ours."""

from __future__ import annotations

import socket
from pathlib import Path

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


def test_an_error_of_somebody_else_has_a_sentence_too() -> None:
    request = httpx.Request("GET", "http://proxy.example/v1/classes")
    refused = Refused(httpx.Response(502, text="<html>Bad Gateway</html>", request=request))
    assert (str(refused), refused.status, refused.retry_after) == (f"{request.url} answered 502", 502, None)
    ours = httpx.Response(503, json={"detail": "full", "safe": 3}, headers={"Retry-After": "7"}, request=request)
    assert (str(Refused(ours)), Refused(ours).safe, Refused(ours).retry_after) == ("full", 3, 7.0)
