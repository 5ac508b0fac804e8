"""Who may come in: tokens that are shown once, stored as hashes, in the learner's folder.

    birds.siesta/tokens.json    id, scope, moment and SHA-256 of each; readable by its owner only

A token has 256 random bits, so that its hash needs no salt and no slowness.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from siesta.errors import BadInput, Damaged, DiskRefused

__all__ = ["SCOPES", "Scope", "Token", "Tokens", "Tries"]

Scope = Literal["ask", "teach"]
"""What one may do: `teach` includes `ask`."""

SCOPES: tuple[Scope, ...] = get_args(Scope)
_FILE = "tokens.json"


@dataclass(frozen=True)
class Token:
    """What is stored of a token."""

    id: str
    scope: Scope
    made: str
    sha256: str


class Tokens:
    """Those of one learner; what another process does to them counts at once."""

    def __init__(self, path: Path) -> None:
        """Takes the learner's folder."""
        self._file = path / _FILE
        self._seen: tuple[int, int] | None = None
        self._known: list[Token] = []

    def all(self) -> list[Token]:
        """Oldest first."""
        try:
            facts = self._file.stat()
            if (facts.st_mtime_ns, facts.st_ino) != self._seen:
                self._known = [Token(**one) for one in json.loads(self._file.read_text("utf-8"))]
                self._seen = facts.st_mtime_ns, facts.st_ino
        except FileNotFoundError:
            self._seen, self._known = None, []
        except (OSError, ValueError, TypeError) as error:
            raise Damaged(f"{self._file} cannot be read: remove it and make new tokens") from error
        return list(self._known)

    def new(self, scope: Scope) -> str:
        """Makes a token; what is returned is stored nowhere."""
        if scope not in SCOPES:
            raise BadInput(f"there is no scope '{scope}': choose one of {', '.join(SCOPES)}")
        secret = f"siesta_{secrets.token_urlsafe(32)}"
        made = datetime.now(UTC).isoformat(timespec="seconds")
        self._write([*self.all(), Token(secrets.token_hex(4), scope, made, _hash(secret))])
        return secret

    def revoke(self, token_id: str) -> None:
        """Lets nobody in with it any more."""
        known = self.all()
        left = [token for token in known if token.id != token_id]
        if len(left) == len(known):
            raise BadInput(f"there is no token '{token_id}': `siesta token list` shows them")
        self._write(left)

    def scopes(self, secret: str) -> frozenset[Scope]:
        """What one may do who knows `secret`; nothing, if it is none of them. Takes the same time for any."""
        offered, found = _hash(secret), frozenset[Scope]()
        for token in self.all():
            if hmac.compare_digest(token.sha256, offered):
                found = frozenset(SCOPES if token.scope == "teach" else ("ask",))
        return found

    def _write(self, tokens: Sequence[Token]) -> None:
        partial = self._file.with_name(f".{_FILE}.partial")
        try:
            partial.unlink(missing_ok=True)
            with os.fdopen(
                os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
            ) as file:
                json.dump([asdict(token) for token in tokens], file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self._file)
        except OSError as error:
            raise DiskRefused(f"{self._file} cannot be written: {error.strerror}") from error


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


class Tries:
    """Wrong tokens by address: after some of them in a minute, no more are looked at for the rest of it.

    Example:
        >>> tries = Tries(most=1)
        >>> tries.wrong("192.0.2.7")
        >>> 0 < tries.seconds_to_wait("192.0.2.7") <= 60, tries.seconds_to_wait("192.0.2.8")
        (True, 0.0)
    """

    def __init__(self, most: int = 10, window: float = 60.0, addresses: int = 10_000) -> None:
        """Remembers so many addresses, the latest."""
        self._most, self._window, self._addresses = most, window, addresses
        self._since: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def seconds_to_wait(self, address: str) -> float:
        """Before it may try again."""
        first, count = self._since.get(address, (0.0, 0))
        left = first + self._window - time.monotonic()
        return max(left, 0.0) if count >= self._most else 0.0

    def wrong(self, address: str) -> None:
        """Counts a wrong token."""
        now = time.monotonic()
        first, count = self._since.pop(address, (now, 0))
        self._since[address] = (first, count + 1) if now < first + self._window else (now, 1)
        if len(self._since) > self._addresses:
            self._since.popitem(last=False)
