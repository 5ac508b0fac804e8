"""`siesta serve` hands its options to the server; `siesta token` makes, lists and revokes tokens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from siesta.images import MAX_PIXELS
from siesta.service import server
from siesta.service.tokens import TokenStore
from tests.cli.running import assert_refused, result_of, run


def test_serve_hands_its_options_to_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Path, Any]] = []

    def serve(path: Path, options: Any, announce: Callable[[str], None]) -> None:
        announce("Open http://[::1]:1")
        calls.append((path, options))

    monkeypatch.setattr(server, "serve", serve)
    options = ["--host", "0.0.0.0", "--port", "0", "--max-body", "2MiB", "--queue", "3", "--no-thumbnails"]
    done = run("serve", tmp_path / "a.siesta", *options, "--allow-host", "a.example", "--allow-host", "b.example")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "Open http://[::1]:1\n")
    ((path, given),) = calls
    assert path == tmp_path / "a.siesta"
    assert (given.host, given.port, given.thumbnails, given.durability) == ("0.0.0.0", 0, False, "process")
    assert given.hosts == ("a.example", "b.example") and given.origins == ()
    assert 2 * 2**20 in vars(given.limits).values() and 3 in vars(given.limits).values()
    assert given.limits.pixels == MAX_PIXELS, "the limit of the library"


def test_tokens_are_made_listed_and_revoked(empty_copy: Path, tmp_path: Path) -> None:
    path = empty_copy
    assert_refused(3, "there is no learner at", "token", "new", tmp_path / "a.siesta")
    secret = run("token", "new", path, "--scope", "ask").stdout.strip()
    assert TokenStore(path).scopes(secret) == {"ask"}
    (listed,) = result_of("token", "list", path)
    assert set(listed) == {"id", "scope", "made"} and listed["id"] in run("token", "list", path).stdout
    assert_refused(3, "no scope 'all': choose one of ask, teach", "token", "new", path, "--scope", "all")
    assert result_of("token", "revoke", path, listed["id"]) == {"revoked": listed["id"]}
    assert result_of("token", "list", path) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--timeout", "0"], "the limit 'seconds' is 0.0"),
        (["--timeout", "inf"], "the limit 'seconds' is inf: give a finite number above zero"),
        (["--max-body", "much"], "is not a size"),
        (["--host", "no such host"], "is not an address to listen on"),
        (["--tls-cert", "a.pem"], "give both --tls-cert and --tls-key"),
    ],
)
def test_options_of_serve_are_checked(tmp_path: Path, options: list[str], message: str) -> None:
    assert_refused(3, message, "serve", tmp_path / "a.siesta", *options)
