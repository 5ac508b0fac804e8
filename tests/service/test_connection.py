"""Errors of connections."""

from __future__ import annotations

import pytest

from siesta.errors import BadInput
from siesta.service.connection import Connection, Unreachable


def test_a_service_that_does_not_answer_is_unreachable() -> None:
    with Connection("http://127.0.0.1:9") as connection, pytest.raises(Unreachable, match="does not answer"):
        connection.send("GET", "/")


def test_a_wrong_address_or_token_is_named() -> None:
    with pytest.raises(BadInput, match="is not the address of a service"):
        Connection("ftp://here")
    with pytest.raises(BadInput, match="a token is one line of ASCII"):
        Connection("http://127.0.0.1:9", "two\nlines")
