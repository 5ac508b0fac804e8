"""Start of the service: its address, its TLS files, and reasons why it cannot start."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from siesta.errors import BadInput
from siesta.service.options import ServiceOptions
from siesta.service.server import serve
from siesta.service.tokens import TokenStore
from tests.service.conftest import StartServer
from tests.service.server_process import ServerProcess, make_image


def make_certificate(folder: Path, *options: str) -> tuple[Path, Path]:
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-days", "2", "-newkey", "rsa:2048", "-subj", "/CN=localhost"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    made = subprocess.run(
        [*command, "-addext", "subjectAltName=IP:127.0.0.1", *options, *files], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("openssl cannot make a certificate here")
    return certificate, key


def assert_not_started(path: Path, options: ServiceOptions, message: str) -> None:
    messages: list[str] = []
    with pytest.raises(BadInput, match=message):
        serve(path, options, messages.append)
    assert messages == []


def test_a_missing_learner_is_refused(tmp_path: Path) -> None:
    assert_not_started(tmp_path / "none", ServiceOptions(port=0), "there is no learner at")


def test_an_unknown_durability_is_refused(learner_path: Path) -> None:
    assert_not_started(learner_path, ServiceOptions(port=0, durability="none"), "there is no durability 'none'")


def test_an_address_that_cannot_be_used_is_refused(learner_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert_not_started(learner_path, ServiceOptions(port=port), f"cannot listen on 127.0.0.1, port {port}")
    assert_not_started(learner_path, ServiceOptions(host="no such host"), "'no such host' is not an address to listen")


def test_files_that_are_no_certificate_and_key_are_refused(learner_path: Path) -> None:
    options = ServiceOptions(port=0, certificate=learner_path, key=learner_path)
    assert_not_started(learner_path, options, "are not a certificate and its key")


def test_a_key_with_a_password_is_refused(learner_path: Path, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "-passout", "pass:secret")
    options = ServiceOptions(port=0, certificate=certificate, key=key)
    assert_not_started(learner_path, options, r"key\.pem is encrypted: give a key without a password")


def test_a_learner_is_not_served_twice(server: ServerProcess) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"by process \d+"):
        ServerProcess(server.path)
    assert httpx.get(f"{server.url}/readyz").status_code == 200


def test_a_service_with_a_certificate_answers_over_tls(start_server: StartServer, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "-nodes")
    server = start_server("--tls-cert", str(certificate), "--tls-key", str(key))
    assert server.url.startswith("https://")
    context = ssl.create_default_context(cafile=certificate)
    assert httpx.get(f"{server.url}/healthz", verify=context).text == "alive\n"


def test_a_token_is_shown_at_the_first_start_only(start_server: StartServer) -> None:
    server = start_server("--host", "0.0.0.0")
    assert "://0.0.0.0" not in server.output(), "no browser can open that"
    shown = re.search(r"shown this once: (\S+)", server.output())
    assert shown is not None and TokenStore(server.path).scopes(shown[1]) == {"ask", "teach"}
    assert "cross the network unencrypted" in server.output()
    server.stop()
    restarted = start_server("--host", "0.0.0.0", path=server.path)
    assert "shown this once" not in restarted.output()


def test_what_a_service_makes_can_be_read_by_its_user_only(start_server: StartServer) -> None:
    server = start_server()
    before = set(server.path.rglob("*"))
    with server.client() as client:
        client.learn([make_image("red", number) for number in range(4)], "red")
        client.sleep(updates=1)
        end = time.monotonic() + 60
        while client.sleep_status().state != "done" and time.monotonic() < end:
            time.sleep(0.1)
    made = set(server.path.rglob("*")) - before
    assert {"000001", "top.safetensors", "status.json"} <= {file.name for file in made}
    assert not [file for file in made if file.stat().st_mode & 0o077]
