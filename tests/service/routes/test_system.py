"""Information, health checks and the browser's session over HTTP."""

from __future__ import annotations

import httpx

from siesta.policies import POLICIES
from siesta.service.client import Client
from tests.service.conftest import Send
from tests.service.server_process import ServerProcess


def test_info_has_contents_sizes_and_limits(taught: Client) -> None:
    info = taught.info()
    assert (info.name, info.classes, info.generation, info.scopes) == ("colours.siesta", 2, 0, ["ask", "teach"])
    assert info.samples.stored == 4
    assert info.bytes.used == 4 * info.bytes.a_sample + info.bytes.thumbnails <= info.bytes.allowed
    assert info.bytes.thumbnails > 0
    assert {policy.name for policy in info.policies} == set(POLICIES)
    assert info.default_policy in POLICIES
    assert (info.held_out.samples, info.held_out.accuracy) == (0, None)


def test_health_checks_answer_get_and_head(server: ServerProcess) -> None:
    assert httpx.get(f"{server.url}/healthz").text == "alive\n"
    assert httpx.get(f"{server.url}/readyz").text == "ready\n"
    for path in ("/", "/healthz", "/readyz"):
        response = httpx.head(server.url + path)
        assert (response.status_code, response.content) == (200, b""), path


def test_on_loopback_a_session_needs_no_token_and_sets_no_cookie(send: Send) -> None:
    response = send("POST", "/v1/session", json={"token": "anything"})
    assert response.status_code == 204 and "set-cookie" not in response.headers
