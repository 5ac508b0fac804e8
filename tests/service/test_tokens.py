"""Tokens: shown once, stored as hashes, for their owner's eyes only; and the command that makes them."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from siesta.cli.app import app
from siesta.errors import BadInput, Damaged, DiskRefused
from siesta.service.tokens import Tokens, Tries


def test_a_token_is_stored_as_a_hash_that_only_its_owner_reads(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    secret = tokens.new("teach")
    file = tmp_path / "tokens.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secret not in file.read_text() and secret.removeprefix("siesta_") not in file.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["tokens.json"]
    assert tokens.new("teach") != secret


def test_scopes_and_revoking_count_at_once_in_every_process(tmp_path: Path) -> None:
    here, elsewhere = Tokens(tmp_path), Tokens(tmp_path)
    assert here.scopes("anything") == frozenset()
    ask, teach = elsewhere.new("ask"), elsewhere.new("teach")
    assert [sorted(here.scopes(secret)) for secret in (ask, teach)] == [["ask"], ["ask", "teach"]]
    for wrong in ("", ask[:-1], ask + "x", teach.upper(), "\udc80"):
        assert here.scopes(wrong) == frozenset()
    elsewhere.revoke(here.all()[0].id)
    assert [sorted(here.scopes(secret)) for secret in (ask, teach)] == [[], ["ask", "teach"]]
    with pytest.raises(BadInput, match="no token 'none'"):
        here.revoke("none")
    (tmp_path / "tokens.json").write_text("{")
    with pytest.raises(Damaged, match="remove it and make new tokens"):
        here.scopes(teach)


def test_a_full_disk_is_said_in_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("siesta.service.tokens.os.fsync", full)
    with pytest.raises(DiskRefused, match=r"tokens\.json cannot be written: No space left on device"):
        Tokens(tmp_path).new("ask")


def test_wrong_tries_are_limited_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("siesta.service.tokens.time.monotonic", lambda: now)
    tries = Tries(most=3, window=60, addresses=2)
    for _ in range(3):
        assert tries.seconds_to_wait("a") == 0
        tries.wrong("a")
    assert (tries.seconds_to_wait("a"), tries.seconds_to_wait("b")) == (60, 0)
    now += 61
    assert tries.seconds_to_wait("a") == 0
    tries.wrong("a")
    assert tries.seconds_to_wait("a") == 0
    for address in ("b", "c", "d"):
        tries.wrong(address)
    assert len(tries._since) == 2


def test_the_command_makes_lists_and_revokes(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["token", *arguments])
        if done.exception is not None:
            raise done.exception
        return done.stdout

    path = tmp_path / "a.siesta"
    with pytest.raises(BadInput, match="there is no learner at"):
        run("new", str(path))
    path.mkdir()
    (path / "store.sqlite").touch()
    secret = run("new", str(path), "--scope", "ask").strip()
    assert Tokens(path).scopes(secret) == {"ask"}
    (listed,) = json.loads(run("list", str(path), "--json"))
    assert set(listed) == {"id", "scope", "made"} and listed["id"] in run("list", str(path))
    with pytest.raises(BadInput, match="no scope 'all': choose one of ask, teach"):
        run("new", str(path), "--scope", "all")
    run("revoke", str(path), listed["id"])
    assert json.loads(run("list", str(path), "--json")) == []
