"""Access tokens of a service, stored as hashes in the learner's folder.

    birds.siesta/tokens.json    id, scope, date and SHA-256 of each token; readable by its owner only (mode 600)
    birds.siesta/tokens.lock    held by the process that changes it

A token has 256 random bits, so a plain SHA-256 without salt is enough.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from siesta.errors import Applied, BadInput, Damaged, DiskRefused, SiestaError
from siesta.files import Lock, disk_errors, refuse_links, replace_file

__all__ = ["PACKS", "SCOPES", "RateLimiter", "Scope", "Token", "TokenStore"]

Scope = Literal["ask", "teach", "sleep"]
"""Scope of a token; `teach` includes `ask`, and `sleep` is for the endpoints of a sleeper alone."""

SCOPES: tuple[Scope, ...] = get_args(Scope)
_INCLUDED: dict[Scope, frozenset[Scope]] = {
    "ask": frozenset({"ask"}),
    "teach": frozenset({"ask", "teach"}),
    "sleep": frozenset({"sleep"}),
}
PACKS = "packs"
"""Name of the folder in that of a sleeper, which has tokens but is no learner."""

_FILE = "tokens.json"
_LOCK_FILE = "tokens.lock"
_LOCK_SECONDS = 30.0  # a change takes a sync of the disk


@dataclass(frozen=True)
class Token:
    """Stored record of a token; its fields are the keys of the file.

    Attributes:
        id: Public id, by which the token is revoked.
        scope: What the token allows.
        made: Date and time of its creation (ISO 8601, UTC).
        sha256: Hash of the secret.
    """

    id: str
    scope: Scope
    made: str
    sha256: str


class TokenStore:
    """Tokens of one learner; changes by other processes take effect at once.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tokens = TokenStore(Path(folder))
        ...     secret = tokens.new("ask")
        ...     tokens.scopes(secret), tokens.scopes("another")
        (frozenset({'ask'}), frozenset())
    """

    def __init__(self, path: Path) -> None:
        """Create the store of tokens.

        Args:
            path: Folder of the learner.
        """
        self._path = path
        self._file = path / _FILE
        self._loaded_stamp: tuple[int, int] | None = None
        self._loaded: list[Token] = []

    def all(self) -> list[Token]:
        """Return all tokens, oldest first."""
        try:
            stat = self._file.stat()
            stamp = (stat.st_mtime_ns, stat.st_ino)
            if stamp != self._loaded_stamp:
                self._loaded = [Token(**record) for record in json.loads(self._file.read_text("utf-8"))]
                self._loaded_stamp = stamp
        except FileNotFoundError:
            self._loaded_stamp = None
            self._loaded = []
        except OSError as error:
            raise DiskRefused(
                f"{self._file} cannot be read ({error.strerror}): check its disk and try again"
            ) from error
        except (ValueError, TypeError) as error:
            raise Damaged(f"{self._file} cannot be read: remove it and create new tokens") from error
        return list(self._loaded)

    def new(self, scope: Scope) -> str:
        """Create a token and return its secret, which is not stored."""
        if scope not in SCOPES:
            raise BadInput(f"there is no scope '{scope}': choose one of {', '.join(SCOPES)}")
        secret = f"siesta_{secrets.token_urlsafe(32)}"
        made = datetime.now(UTC).isoformat(timespec="seconds")
        token = Token(secrets.token_hex(4), scope, made, _hash(secret))
        applied = f"token {token.id} was stored, but never shown"
        with self._change(applied, "revoke it with `siesta token revoke` and create another one") as tokens:
            tokens.append(token)
        return secret

    def revoke(self, token_id: str) -> None:
        """Delete a token, which is refused from now on."""
        with self._change(f"token {token_id} was revoked", "see whether `siesta token list` still shows it") as tokens:
            remaining = [token for token in tokens if token.id != token_id]
            if len(remaining) == len(tokens):
                raise BadInput(f"there is no token '{token_id}': `siesta token list` shows them")
            tokens[:] = remaining

    def scopes(self, secret: str) -> frozenset[Scope]:
        """Return what a secret allows, nothing if it is unknown; takes the same time for every secret."""
        digest = _hash(secret)
        scopes = frozenset[Scope]()
        for token in self.all():
            if hmac.compare_digest(token.sha256, digest):
                scopes = _INCLUDED[token.scope]
        return scopes

    @contextmanager
    def _change(self, applied: str, remedy: str) -> Iterator[list[Token]]:
        """Yield the tokens and write what the block makes of them; no other process changes them meanwhile.

        Args:
            applied: What the change has done, if the disk fails after it.
            remedy: What to do then, once the disk has been checked.
        """

        def message(pid: str) -> str:
            return f"process {pid} is changing the tokens of {self._path}: try again"

        refuse_links(self._path)
        with disk_errors(self._path):
            lock = Lock(self._path / _LOCK_FILE, message, _LOCK_SECONDS)
        try:
            self._loaded_stamp = None
            tokens = self.all()
            yield tokens
            try:
                self._write(tokens)
            except DiskRefused as error:
                self._raise_if_made(error, tokens, applied, remedy)
                raise
        finally:
            lock.release()

    def _raise_if_made(self, error: DiskRefused, tokens: Sequence[Token], applied: str, remedy: str) -> None:
        """Raise another error if a write that was refused was made all the same, or if that cannot be seen."""
        self._loaded_stamp = None
        try:
            made = self.all() == tokens
        except SiestaError:
            words = f"the disk of {self._path} refused a change of tokens, which may have been made all the same"
            raise DiskRefused(f"{words}: check the disk, and see what `siesta token list` shows") from error
        if made:
            words = f"{applied}; the disk of {self._path} refused to sync that"
            raise Applied(f"{words}: check the disk, and {remedy}") from error

    def _write(self, tokens: Sequence[Token]) -> None:
        replace_file(self._file, json.dumps([asdict(token) for token in tokens], indent=1), mode=0o600)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


class RateLimiter:
    """Counts failures by address; an address with too many of them has to wait until its window is over.

    Example:
        >>> limiter = RateLimiter(max_failures=1)
        >>> limiter.record_failure("192.0.2.7")
        >>> 0 < limiter.seconds_to_wait("192.0.2.7") <= 60, limiter.seconds_to_wait("192.0.2.8")
        (True, 0.0)
    """

    def __init__(self, max_failures: int = 10, window: float = 60.0, max_addresses: int = 10_000) -> None:
        """Create a limiter without failures.

        Args:
            max_failures: Failures that an address may have in a window.
            window: Length of a window in seconds; it begins with the first failure.
            max_addresses: Number of addresses that are remembered, those with the latest failures.
        """
        self._max_failures = max_failures
        self._window = window
        self._max_addresses = max_addresses
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()  # begin of the window, count

    def __len__(self) -> int:
        """Return the number of addresses that are remembered."""
        return len(self._failures)

    def seconds_to_wait(self, address: str) -> float:
        """Return how long an address has to wait; 0 if it may try again."""
        begin, count = self._failures.get(address, (0.0, 0))
        remaining = begin + self._window - time.monotonic()
        return max(remaining, 0.0) if count >= self._max_failures else 0.0

    def record_failure(self, address: str) -> None:
        """Count a failure of an address."""
        now = time.monotonic()
        begin, count = self._failures.pop(address, (now, 0))
        self._failures[address] = (begin, count + 1) if now < begin + self._window else (now, 1)
        if len(self._failures) > self._max_addresses:
            self._failures.popitem(last=False)
