"""Host, origin and token of requests, on loopback and on every address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from siesta.service.auth import Credentials, TokenVerifier, host_name
from siesta.service.client import Client, RequestRefused
from siesta.service.options import ServiceOptions
from siesta.service.problems import Problem
from siesta.service.tokens import TokenStore
from tests.service.conftest import Send, StartServer
from tests.service.server_process import ServerProcess, make_image, multipart_body, read_response, send_half


@pytest.fixture(scope="module")
def public_server(start_server: StartServer) -> ServerProcess:
    """A server on every address, which needs tokens, from loopback too."""
    return start_server(
        "--host", "0.0.0.0", "--allow-host", "Birds.example", "--allow-origin", "https://friend.example"
    )


@pytest.fixture(scope="module")
def secret(public_server: ServerProcess) -> str:
    """The token that the server has shown."""
    found = re.search(r"shown this once: (\S+)", public_server.output())
    assert found is not None
    return found[1]


@pytest.fixture
def http(public_server: ServerProcess) -> Iterator[httpx.Client]:
    """A client of the public server without a token."""
    with httpx.Client(base_url=public_server.url) as client:
        yield client


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost", "localhost"),
        ("LOCALHOST:80", "localhost"),
        ("127.0.0.1:8000", "127.0.0.1"),
        ("[::1]:80", "::1"),
        *((wrong, None) for wrong in ("", "a@localhost", "localhost/", "localhost:port", "[::1", "a b/")),
        *((wrong, None) for wrong in ("localhost#", "localhost?x")),
    ],
)
def test_a_host_header_is_read_as_browsers_write_it(header: str, name: str | None) -> None:
    assert host_name(header) == name


def test_wrong_tokens_are_limited_and_wrong_cookies_are_not(tmp_path: Path) -> None:
    tokens = TokenStore(tmp_path)
    verifier = TokenVerifier(tokens)
    right = Credentials(tokens.new("ask"))

    def refused(credentials: Credentials) -> int:
        with pytest.raises(Problem) as caught:
            verifier.authorize("192.0.2.7", credentials)
        return caught.value.status

    assert [refused(Credentials("wrong", by_cookie=True)) for _ in range(12)] == [401] * 12
    assert verifier.authorize("192.0.2.7", right) == {"ask"}
    assert [refused(Credentials("wrong")) for _ in range(11)] == [401] * 10 + [429]
    assert refused(right) == 429, "the address has to wait"
    assert verifier.authorize("192.0.2.8", right) == {"ask"}


def test_a_damaged_file_of_tokens_makes_no_token_valid(tmp_path: Path) -> None:
    tokens = TokenStore(tmp_path)
    verifier = TokenVerifier(tokens)
    credentials = Credentials(tokens.new("ask"))
    assert verifier.is_valid(credentials)
    (tmp_path / "tokens.json").write_text("{")
    assert not verifier.is_valid(credentials)
    assert not verifier.is_valid(Credentials())


def test_on_loopback_only_names_of_loopback_are_allowed(server: ServerProcess) -> None:
    for name in ("localhost", "127.0.0.1", "LOCALHOST:123", "[::1]:8000"):
        assert httpx.get(f"{server.url}/v1/info", headers={"Host": name}).status_code == 200, name
    for name in ("evil.example", "localhost.evil.example", "192.0.2.7", "localhost@evil.example", ""):
        response = httpx.get(f"{server.url}/v1/info", headers={"Host": name})
        assert (response.status_code, response.json()["status"]) == (400, 400), name


def test_another_site_cannot_make_a_browser_teach(server: ServerProcess) -> None:
    body, content_type = multipart_body(("image", make_image("red")), ("label", "red"))
    url, own_origin = f"{server.url}/v1/learn", server.url
    foreign = [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": ""},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": own_origin, "Sec-Fetch-Site": "cross-site"},
    ]
    own: list[dict[str, str]] = [
        {},
        {"Origin": own_origin},
        {"Origin": own_origin, "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
    ]
    for headers in foreign:
        response = httpx.post(url, content=body, headers={"content-type": content_type, **headers})
        assert response.status_code == 403, headers
        assert "access-control-allow-origin" not in response.headers
    for headers in own:
        response = httpx.post(url, content=body, headers={"content-type": content_type, **headers})
        assert response.status_code == 200, headers
    preflight = httpx.options(url, headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"})
    assert "access-control-allow-origin" not in preflight.headers


def test_on_a_public_address_a_token_is_needed(public_server: ServerProcess, http: httpx.Client, secret: str) -> None:
    for path in ("/v1/info", "/v1/classes", "/v1/events", "/metrics", "/v1/samples/1/thumbnail"):
        response = http.get(path)
        assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer"), path
    for path in ("/", "/healthz", "/readyz", "/openapi.json", "/static/main.js"):
        assert http.get(path).status_code == 200, path
    port = public_server.url.rpartition(":")[2]
    assert f"Open http://Birds.example:{port}/#token={secret}" in public_server.output()
    with Client(public_server.url, token=secret) as client:
        assert client.learn(make_image("red"), "red")
        assert client.info().scopes == ["ask", "teach"]


def test_a_request_without_a_token_is_refused_before_its_body_is_read(public_server: ServerProcess) -> None:
    body, content_type = multipart_body(("image", make_image("red")), ("label", "red"))
    with send_half(public_server, "/v1/learn", body, content_type) as connection:
        assert read_response(connection)[0] == 401


def test_a_token_that_may_ask_may_not_teach(public_server: ServerProcess, secret: str) -> None:
    with Client(public_server.url, token=secret) as teacher:
        teacher.learn(make_image("red"), "red")
    with Client(public_server.url, token=TokenStore(public_server.path).new("ask")) as client:
        assert client.predict(make_image("red")).label == "red"
        assert client.info().scopes == ["ask"]
        for request in (lambda: client.learn(make_image("red"), "red"), lambda: client.sleep(seconds=1), client.wake):
            with pytest.raises(RequestRefused, match="lacks the scope 'teach'") as caught:
                request()
            assert caught.value.status == 403


def test_a_browser_gets_a_cookie_for_its_token(http: httpx.Client, secret: str) -> None:
    assert http.post("/v1/session", json={"token": "siesta_wrong"}).status_code == 401
    response = http.post("/v1/session", json={"token": secret})
    cookie = response.headers["set-cookie"].lower()
    assert response.status_code == 204 and "httponly" in cookie and "samesite=strict" in cookie
    assert http.get("/v1/info").json()["scopes"] == ["ask", "teach"]
    foreign = http.delete("/v1/classes/1", headers={"Origin": "https://evil.example"})
    assert foreign.status_code == 403, "a cookie alone is not enough"
    assert http.delete("/v1/session").status_code == 204
    assert http.get("/v1/info").status_code == 401


def test_named_hosts_and_origins_are_allowed(http: httpx.Client, secret: str) -> None:
    for name in ("birds.example", "192.0.2.7", "[2001:db8::1]:8000"):
        assert http.get("/healthz", headers={"Host": name}).status_code == 200
    assert http.get("/healthz", headers={"Host": "evil.example"}).status_code == 400
    friend = {"Origin": "https://friend.example", "Authorization": f"Bearer {secret}"}
    response = http.post("/v1/predict", files={"image": make_image("red")}, headers=friend)
    assert response.status_code in (200, 409)
    assert response.headers["access-control-allow-origin"] == "https://friend.example"
    preflight = http.options("/v1/learn", headers={**friend, "Access-Control-Request-Method": "POST"})
    assert preflight.headers["access-control-allow-origin"] == "https://friend.example"
    other = http.get("/v1/info", headers={**friend, "Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers


def test_a_revoked_token_is_refused_and_ends_its_stream(public_server: ServerProcess) -> None:
    tokens = TokenStore(public_server.path)
    with Client(public_server.url, token=tokens.new("ask")) as client:
        token_id = tokens.all()[-1].id
        assert client.info().scopes == ["ask"]
        events = client.events()
        next(events)
        tokens.revoke(token_id)
        assert len(list(events)) <= 3, "the stream ends"
        with pytest.raises(RequestRefused, match="wrong, or was revoked"):
            client.classes()


@pytest.mark.parametrize("service_options", [ServiceOptions(host="0.0.0.0")])
def test_an_address_with_many_wrong_tokens_has_to_wait(send: Send) -> None:
    wrong = {"Authorization": "Bearer siesta_wrong"}
    assert [send("GET", "/v1/classes", headers=wrong).status_code for _ in range(10)] == [401] * 10
    refused = send("GET", "/v1/classes", headers=wrong)
    assert refused.status_code == 429 and 0 < int(refused.headers["retry-after"]) <= 61
    assert send("POST", "/v1/session", json={"token": "x"}).status_code == 429
    assert send("GET", "/healthz").status_code == 200


def test_an_old_cookie_is_deleted_and_does_not_count_as_a_try(public_server: ServerProcess, secret: str) -> None:
    name = f"siesta_token_{public_server.url.rpartition(':')[2]}"
    for _ in range(12):
        response = httpx.get(f"{public_server.url}/v1/info", headers={"Cookie": f"{name}=siesta_of_old"})
        assert response.status_code == 401
        assert response.headers["set-cookie"].startswith(f'{name}="";')
        assert "Max-Age=0" in response.headers["set-cookie"]
    for headers in ({"Authorization": f"Bearer {secret}"}, {"Cookie": f"{name}={secret}"}):
        assert httpx.get(f"{public_server.url}/v1/info", headers=headers).status_code == 200
    other = httpx.get(f"{public_server.url}/v1/info", headers={"Cookie": f"siesta_token_1={secret}"})
    assert other.status_code == 401 and "set-cookie" not in other.headers, "the cookie of another port is not ours"


def test_scripts_of_allowed_sites_need_a_token_besides_the_cookie(http: httpx.Client, secret: str) -> None:
    assert http.post("/v1/session", json={"token": secret}).status_code == 204
    assert http.get("/v1/info").status_code == 200
    friend = {"Origin": "https://friend.example"}
    assert http.get("/v1/info", headers=friend).status_code == 401
    assert http.delete("/v1/classes/1", headers=friend).status_code == 401
    assert http.get("/v1/info", headers={**friend, "Authorization": f"Bearer {secret}"}).status_code == 200
    assert http.get("/v1/info").status_code == 200, "the cookie is still there"
