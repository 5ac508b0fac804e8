"""Strict parsing of multipart forms."""

from __future__ import annotations

import gc
import warnings

import httpx
import pytest

from tests.service.conftest import Send
from tests.service.server_process import make_image, multipart_body


def learn(send: Send, body: bytes, content_type: str) -> httpx.Response:
    return send("POST", "/v1/learn", content=body, headers={"content-type": content_type})


def test_a_whole_form_in_utf_8_is_accepted(send: Send) -> None:
    response = learn(send, *multipart_body(("image", make_image("red")), ("label", "fünf 🌙")))
    assert response.status_code == 200
    assert send("GET", "/v1/classes").json()["classes"][0]["label"] == "fünf 🌙"


def test_text_that_is_not_utf_8_is_refused(send: Send) -> None:
    body, content_type = multipart_body(("image", make_image("red")), ("label", "five"))
    response = learn(send, body.replace(b"five\r\n", "fünf\r\n".encode("latin-1")), content_type)
    assert response.status_code == 422
    assert response.json()["detail"] == "label is not UTF-8: send text as UTF-8"
    assert send("GET", "/v1/classes").json()["classes"] == []


def test_a_truncated_form_is_refused(send: Send) -> None:
    body, content_type = multipart_body(("label", "red"), ("image", make_image("red")))
    response = learn(send, body[: -len("--edge--\r\n")], content_type)
    assert response.status_code == 400
    assert response.json()["detail"].startswith("the body ends before its last boundary")
    assert send("GET", "/v1/classes").json()["classes"] == []


@pytest.mark.parametrize("charset", ["undefined", "utf-16", "idna", "latin-1"])
def test_text_is_utf_8_whatever_charset_is_declared(send: Send, charset: str) -> None:
    body, content_type = multipart_body(("image", make_image("red")), ("label", "fünf"))
    response = learn(send, body, f"{content_type}; charset={charset}")
    assert response.status_code == 200
    assert send("GET", "/v1/classes").json()["classes"][0]["label"] == "fünf"


def test_files_of_a_form_with_wrong_text_are_closed(send: Send) -> None:
    body, content_type = multipart_body(("image", make_image("red")), ("label", "five"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert learn(send, body.replace(b"five\r\n", b"\xff\r\n"), content_type).status_code == 422
        gc.collect()
    assert [str(warning.message) for warning in caught if "tempfile" in str(warning.message)] == []
