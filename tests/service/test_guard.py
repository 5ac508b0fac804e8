"""Who may come in: Host, other sites, tokens; against real processes, on loopback and on every address."""

from __future__ import annotations

import re
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from siesta.service.client import Client, Refused
from siesta.service.guard import host_name, needed_scope
from siesta.service.options import Options
from siesta.service.tokens import Tokens
from tests.service.conftest import Serve
from tests.service.running import Running, multipart, picture


@pytest.fixture(scope="module")
def open_wide(serve: Serve) -> Running:
    """On every address: tokens are needed, from loopback too."""
    return serve("--host", "0.0.0.0", "--allow-host", "Birds.example", "--allow-origin", "https://friend.example")


@pytest.fixture(scope="module")
def secret(open_wide: Running) -> str:
    found = re.search(r"shown this once: (\S+)", open_wide.said())
    assert found is not None
    return found[1]


@pytest.fixture
def bare(open_wide: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=open_wide.url) as made:
        yield made


def test_host_names_are_read_as_browsers_write_them() -> None:
    right = {"localhost": "localhost", "LOCALHOST:80": "localhost", "127.0.0.1:8000": "127.0.0.1", "[::1]:80": "::1"}
    assert {header: host_name(header) for header in right} == right
    for wrong in ("", "a@localhost", "localhost/", "localhost:port", "[::1", "a b/", "localhost#", "localhost?x"):
        assert host_name(wrong) is None, wrong


def test_scopes_of_routes() -> None:
    assert needed_scope("GET", "/v1/classes") == needed_scope("POST", "/v1/predict") == "ask"
    assert needed_scope("GET", "/metrics") == "ask"
    for method, path in (("POST", "/v1/learn"), ("DELETE", "/v1/sleep"), ("PATCH", "/v1/classes/1"), ("PUT", "/v1/x")):
        assert needed_scope(method, path) == "teach"
    for path in ("/", "/static/main.js", "/healthz", "/readyz", "/openapi.json", "/v1/session"):
        assert needed_scope("GET", path) is None


@pytest.mark.parametrize(
    ("host", "hosts", "local"),
    [
        ("127.0.0.1", (), True),
        ("::1", (), True),
        ("localhost", (), True),
        ("0.0.0.0", (), False),
        ("192.0.2.7", (), False),
        ("127.0.0.1", ("birds.example",), False),
        ("127.0.0.1", ("localhost",), True),
    ],
)
def test_tokens_are_needed_as_soon_as_others_could_come(host: str, hosts: tuple[str, ...], local: bool) -> None:
    assert Options(host=host, hosts=hosts).local is local


def test_on_loopback_only_names_of_loopback_are_answered_to(running: Running) -> None:
    for name in ("localhost", "127.0.0.1", "LOCALHOST:123", "[::1]:8000"):
        assert httpx.get(f"{running.url}/v1/info", headers={"Host": name}).status_code == 200, name
    for name in ("evil.example", "localhost.evil.example", "192.0.2.7", "localhost@evil.example", ""):
        answer = httpx.get(f"{running.url}/v1/info", headers={"Host": name})
        assert (answer.status_code, answer.json()["status"]) == (400, 400), name


def test_other_sites_cannot_make_a_browser_teach(running: Running) -> None:
    body, kind = multipart(("image", picture("red")), ("label", "red"))
    url, own = f"{running.url}/v1/learn", running.url
    foreign = [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": ""},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": own, "Sec-Fetch-Site": "cross-site"},
    ]
    for headers in foreign:
        answer = httpx.post(url, content=body, headers={"content-type": kind, **headers})
        assert answer.status_code == 403, headers
        assert "access-control-allow-origin" not in answer.headers
    for headers in ({}, {"Origin": own}, {"Origin": own, "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
        assert httpx.post(url, content=body, headers={"content-type": kind, **headers}).status_code == 200, headers
    asked = httpx.options(url, headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"})
    assert "access-control-allow-origin" not in asked.headers


def test_elsewhere_a_token_is_needed(open_wide: Running, bare: httpx.Client, secret: str) -> None:
    for path in ("/v1/info", "/v1/classes", "/v1/events", "/metrics", "/v1/samples/1/thumbnail"):
        answer = bare.get(path)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), path
    for path in ("/", "/healthz", "/readyz", "/openapi.json", "/static/main.js"):
        assert bare.get(path).status_code == 200, path
    with Client(open_wide.url, token=secret) as client:
        client.learn(picture("red"), "red")
        assert client.info().scopes == ["ask", "teach"]
    assert "go over the net as they are" in open_wide.said()
    assert f"Open http://Birds.example:{open_wide.url.rpartition(':')[2]}/#token={secret}" in open_wide.said()
    with Client(open_wide.url, token=Tokens(open_wide.path).new("ask")) as client:
        assert client.predict(picture("red")).label == "red"
        assert client.info().scopes == ["ask"]
        for work in (lambda: client.learn(picture("red"), "red"), lambda: client.sleep(seconds=1), client.wake):
            with pytest.raises(Refused, match="may not teach") as caught:
                work()
            assert caught.value.status == 403


def test_a_browser_gets_a_cookie_for_its_token(bare: httpx.Client, secret: str) -> None:
    assert bare.post("/v1/session", json={"token": "siesta_wrong"}).status_code == 401
    answer = bare.post("/v1/session", json={"token": secret})
    cookie = answer.headers["set-cookie"].lower()
    assert answer.status_code == 204 and "httponly" in cookie and "samesite=strict" in cookie
    assert bare.get("/v1/info").json()["scopes"] == ["ask", "teach"]
    foreign = bare.delete("/v1/classes/1", headers={"Origin": "https://evil.example"})
    assert foreign.status_code == 403, "a cookie alone is not enough"
    assert bare.delete("/v1/session").status_code == 204
    assert bare.get("/v1/info").status_code == 401


def test_named_hosts_and_origins_may(open_wide: Running, bare: httpx.Client, secret: str) -> None:
    for name in ("birds.example", "192.0.2.7", "[2001:db8::1]:8000"):
        assert bare.get("/healthz", headers={"Host": name}).status_code == 200
    assert bare.get("/healthz", headers={"Host": "evil.example"}).status_code == 400
    friend = {"Origin": "https://friend.example", "Authorization": f"Bearer {secret}"}
    answer = bare.post("/v1/predict", files={"image": picture("red")}, headers=friend)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "https://friend.example")
    asked = bare.options("/v1/learn", headers={**friend, "Access-Control-Request-Method": "POST"})
    assert asked.headers["access-control-allow-origin"] == "https://friend.example"
    other = bare.get("/v1/info", headers={**friend, "Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers


def test_revoked_it_lets_nobody_in_and_wrong_tries_are_limited(serve: Serve) -> None:
    running = serve("--host", "0.0.0.0")
    assert "://0.0.0.0" not in running.said(), "nobody can open that"
    tokens = Tokens(running.path)
    secret = tokens.new("teach")
    with Client(running.url, token=secret) as client:
        assert client.classes() == []
        tokens.revoke(tokens.all()[-1].id)
        for _ in range(10):
            with pytest.raises(Refused, match="wrong, or was revoked"):
                client.classes()
        with pytest.raises(Refused, match="too many wrong tokens") as caught:
            client.classes()
    assert caught.value.status == 429 and caught.value.retry_after is not None
    assert httpx.post(f"{running.url}/v1/session", json={"token": "x"}).status_code == 429
    assert httpx.get(f"{running.url}/healthz").status_code == 200
    running.end()
    again = serve("--host", "0.0.0.0", path=running.path)
    assert "shown this once" not in again.said()


def test_a_revoked_token_ends_its_stream(serve: Serve) -> None:
    running = serve("--host", "0.0.0.0")
    tokens = Tokens(running.path)
    with Client(running.url, token=tokens.new("ask")) as client:
        events = client.events()
        next(events)
        tokens.revoke(tokens.all()[-1].id)
        assert len(list(events)) <= 3, "it ends"


def test_a_stale_cookie_is_cleared_and_locks_nobody_out(open_wide: Running, secret: str) -> None:
    name = f"siesta_token_{open_wide.url.rpartition(':')[2]}"
    for _ in range(12):
        answer = httpx.get(f"{open_wide.url}/v1/info", headers={"Cookie": f"{name}=siesta_of_old"})
        assert answer.status_code == 401
        assert answer.headers["set-cookie"].startswith(f'{name}="";') and "Max-Age=0" in answer.headers["set-cookie"]
    for headers in ({"Authorization": f"Bearer {secret}"}, {"Cookie": f"{name}={secret}"}):
        assert httpx.get(f"{open_wide.url}/v1/info", headers=headers).status_code == 200
    other = httpx.get(f"{open_wide.url}/v1/info", headers={"Cookie": f"siesta_token_1={secret}"})
    assert other.status_code == 401 and "set-cookie" not in other.headers, "that of another port is not ours"


def test_cookies_do_not_count_for_scripts_of_other_sites(bare: httpx.Client, secret: str) -> None:
    assert bare.post("/v1/session", json={"token": secret}).status_code == 204
    assert bare.get("/v1/info").status_code == 200
    friend = {"Origin": "https://friend.example"}
    assert bare.get("/v1/info", headers=friend).status_code == 401
    assert bare.delete("/v1/classes/1", headers=friend).status_code == 401
    assert bare.get("/v1/info", headers={**friend, "Authorization": f"Bearer {secret}"}).status_code == 200
    assert bare.get("/v1/info").status_code == 200, "and the cookie is still there"


def test_over_tls(serve: Serve, tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = subprocess.run(
        [
            *("openssl", "req", "-x509", "-nodes", "-days", "2", "-newkey", "rsa:2048", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate),
        ],
        capture_output=True,
    )
    if made.returncode:
        pytest.skip("openssl makes no certificate here")
    running = serve("--tls-cert", str(certificate), "--tls-key", str(key))
    assert running.url.startswith("https://")
    assert httpx.get(f"{running.url}/healthz", verify=ssl.create_default_context(cafile=certificate)).text == "alive\n"
