"""Tokens stored as hashes in a file that only its owner can read, and the limit on wrong ones."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from siesta.errors import Applied, BadInput, Damaged, DiskRefused
from siesta.service.tokens import RateLimiter, TokenStore

CREATE_AND_REVOKE = """
import hashlib, sys
from pathlib import Path
from siesta.service.tokens import TokenStore

tokens = TokenStore(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    secret = tokens.new("ask")
    if number % 2:
        print(secret)
        continue
    digest = hashlib.sha256(secret.encode()).hexdigest()
    tokens.revoke(next(token.id for token in tokens.all() if token.sha256 == digest))
"""


def test_a_token_is_stored_as_a_hash_that_only_its_owner_can_read(tmp_path: Path) -> None:
    tokens = TokenStore(tmp_path)
    secret = tokens.new("teach")
    file = tmp_path / "tokens.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secret not in file.read_text() and secret.removeprefix("siesta_") not in file.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokens.json", "tokens.lock"]
    assert tokens.new("teach") != secret


def test_processes_that_change_tokens_at_the_same_moment_lose_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CREATE_AND_REVOKE, str(tmp_path)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    kept = [secret for process in processes for secret in process.communicate()[0].split()]
    tokens = TokenStore(tmp_path)
    assert len(kept) == len(tokens.all()) == 20
    assert all(tokens.scopes(secret) == {"ask"} for secret in kept)


def test_new_and_revoked_tokens_take_effect_at_once_in_every_process(tmp_path: Path) -> None:
    store, other_process = TokenStore(tmp_path), TokenStore(tmp_path)
    assert store.scopes("anything") == frozenset()
    ask, teach = other_process.new("ask"), other_process.new("teach")
    assert [sorted(store.scopes(secret)) for secret in (ask, teach)] == [["ask"], ["ask", "teach"]]
    for wrong in ("", ask[:-1], ask + "x", teach.upper(), "\udc80"):
        assert store.scopes(wrong) == frozenset()
    other_process.revoke(store.all()[0].id)
    assert [sorted(store.scopes(secret)) for secret in (ask, teach)] == [[], ["ask", "teach"]]
    with pytest.raises(BadInput, match="no token 'none'"):
        store.revoke("none")
    (tmp_path / "tokens.json").write_text("{")
    with pytest.raises(Damaged, match="remove it and create new tokens"):
        store.scopes(teach)


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("siesta.files.os.fsync", full)
    with pytest.raises(DiskRefused, match=r"the disk of .*tokens\.json is full: .*free disk space"):
        TokenStore(tmp_path).new("ask")


def test_a_change_that_the_disk_refuses_to_sync_says_that_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    tokens = TokenStore(tmp_path)
    monkeypatch.setattr("siesta.files.sync_folder", refuse)
    with pytest.raises(
        Applied, match=r"was stored, but never shown; .* refused to sync that: check the disk, and revoke"
    ):
        tokens.new("ask")
    (token,) = tokens.all()
    with pytest.raises(Applied, match=f"token {token.id} was revoked; the disk"):
        tokens.revoke(token.id)
    assert tokens.all() == []

    def refuse_all(_: Path) -> None:
        (tmp_path / "tokens.json").rename(tmp_path / "moved")
        (tmp_path / "tokens.json").mkdir()  # reading it fails, as on a failing disk
        refuse(tmp_path)

    monkeypatch.setattr("siesta.files.sync_folder", refuse_all)
    with pytest.raises(DiskRefused, match="refused a change of tokens, which may have been made all the same"):
        tokens.new("ask")


def test_tokens_that_the_disk_does_not_deliver_are_not_called_damaged(tmp_path: Path) -> None:
    (tmp_path / "tokens.json").mkdir()  # reading it fails, as on a failing disk
    with pytest.raises(DiskRefused, match=r"tokens\.json cannot be read .*: check its disk"):
        TokenStore(tmp_path).all()


def test_failures_are_limited_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("siesta.service.tokens.time.monotonic", lambda: now)
    limiter = RateLimiter(max_failures=3, window=60, max_addresses=2)
    for _ in range(3):
        assert limiter.seconds_to_wait("a") == 0
        limiter.record_failure("a")
    assert (limiter.seconds_to_wait("a"), limiter.seconds_to_wait("b")) == (60, 0)
    now += 61
    assert limiter.seconds_to_wait("a") == 0
    limiter.record_failure("a")
    assert limiter.seconds_to_wait("a") == 0
    for address in ("b", "c", "d"):
        limiter.record_failure(address)
    assert len(limiter) == 2
