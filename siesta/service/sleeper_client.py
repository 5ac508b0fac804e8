"""Client of a sleeper, the service that trains in place of a device."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import httpx

from siesta.errors import BadInput
from siesta.files import disk_errors
from siesta.service.connection import Connection, RequestRefused
from siesta.service.pack_schemas import BottomResponse, PackResponse
from siesta.service.schemas import SleepStatusResponse

__all__ = ["TOKEN_VARIABLE", "SleeperClient", "sleeper_token"]

TOKEN_VARIABLE = "SIESTA_SLEEPER_TOKEN"  # noqa: S105 - the name of a variable
"""Environment variable with the token for a sleeper."""

_MOST_RESULT_BYTES = 2**31


def sleeper_token(file: Path | None) -> str | None:
    """Return the token for a sleeper: the content of a file, or else of the environment variable, or None."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    with disk_errors(file):
        return file.read_text("utf-8", errors="replace").strip()


class SleeperClient(Connection):
    """Client of one sleeper; requests raise `Unreachable` and `RequestRefused`.

    Example:
        >>> with SleeperClient("http://127.0.0.1:8001") as sleeper:
        ...     sleeper.has_bottom("0" * 64)  # doctest: +SKIP
        False
    """

    def has_bottom(self, sha256: str) -> bool:
        """Return whether the sleeper has the bottom with this hash."""
        return BottomResponse.model_validate_json(self.send("GET", f"/v1/bottoms/{sha256}")).known

    def send_pack(self, file: Path) -> str:
        """Send a pack; return the id that it has there."""
        with disk_errors(file), file.open("rb") as content:
            return PackResponse.model_validate_json(self.send("POST", "/v1/packs", content=content)).id

    def sleep(self, pack: str, options: dict[str, Any]) -> SleepStatusResponse:
        """Let a pack sleep, with the fields of `PackSleepRequest`."""
        return SleepStatusResponse.model_validate_json(self.send("POST", f"/v1/packs/{pack}/sleep", json=options))

    def status(self, pack: str) -> SleepStatusResponse:
        """Return the status of the sleep on a pack."""
        return SleepStatusResponse.model_validate_json(self.send("GET", f"/v1/packs/{pack}/sleep"))

    def command(self, pack: str, command: Literal["pause", "resume", "wake"]) -> None:
        """Pause the sleep on a pack, continue it, or end it early."""
        self.send("POST", f"/v1/packs/{pack}/sleep/{command}")

    def fetch(self, pack: str, file: Path) -> None:
        """Write the result of a sleep to a file."""
        with self.errors(), self.http.stream("GET", f"/v1/packs/{pack}") as response:
            if not response.is_success:
                response.read()
                raise RequestRefused(response)
            _write(response, file)

    def delete(self, pack: str) -> None:
        """Delete a pack there; its sleep ends at once."""
        self.send("DELETE", f"/v1/packs/{pack}")


def _write(response: httpx.Response, file: Path) -> None:
    with disk_errors(file), file.open("wb") as target:
        written = 0
        for block in response.iter_bytes():
            written += target.write(block)
            if written > _MOST_RESULT_BYTES:
                raise BadInput("the sleeper sends more than a result can have: check its address")
