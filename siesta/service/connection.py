"""A connection to a service, and the errors of its requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

import httpx

from siesta.errors import BadInput, SiestaError

__all__ = ["Connection", "RequestRefused", "Unreachable"]


class Unreachable(BadInput):
    """A service that does not answer."""


class RequestRefused(SiestaError):
    """Request that the service answered with a problem; the message is the problem's detail.

    Attributes:
        status: HTTP status of the response.
        retry_after: Seconds to wait before the request is sent again, None if the service does not say.
        safe: How many images of a learn request were stored before it failed, None if unknown.
        applied: Whether the change was made all the same, so that it must not be sent again.
        sample: Id of the sample that a change has made which was applied, None if it made none.
    """

    def __init__(self, response: httpx.Response) -> None:
        """Read the problem in a response."""
        try:
            problem = response.json()
            detail = str(problem["detail"])
        except (ValueError, TypeError, KeyError):  # the response of a proxy, for example
            problem = {}
            detail = f"{response.url} answered with status {response.status_code}"
        super().__init__(detail)
        self.status = response.status_code
        self.safe = problem.get("safe")
        self.applied = bool(problem.get("applied"))
        self.sample = problem.get("sample")
        retry_after = response.headers.get("retry-after", "")
        self.retry_after = float(retry_after) if retry_after.isdecimal() else None


class Connection:
    """Connection to one service; usable as a context manager, which closes it."""

    def __init__(self, url: str, token: str | None = None, timeout: float = 60.0) -> None:
        """Create it; it connects with the first request.

        Args:
            url: Address of the service, such as http://127.0.0.1:8000.
            token: Token, where the service needs one.
            timeout: Seconds to wait for a response.
        """
        if token is not None and not (token.isascii() and token.isprintable()):
            raise BadInput("a token is one line of ASCII characters: give it as `siesta token new` showed it")
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=_parse_url(url), headers=headers, timeout=timeout)

    def close(self) -> None:
        """Close all connections."""
        self.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise `Unreachable` for a connection that fails in the block."""
        try:
            yield
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise Unreachable(
                f"the service at {self.http.base_url} does not answer ({reason}): check that it is running"
            ) from error

    def send(self, method: str, path: str, **options: Any) -> bytes:
        """Send a request and return the body of the response; raise `RequestRefused` for a problem."""
        with self.errors():
            response = self.http.request(method, path, **options)
        if not response.is_success:
            raise RequestRefused(response)
        return response.content


def _parse_url(url: str) -> httpx.URL:
    with suppress(httpx.InvalidURL):
        parsed = httpx.URL(url)
        if parsed.scheme in ("http", "https") and parsed.host:
            return parsed
    raise BadInput(f"'{url}' is not the address of a service: write it like http://127.0.0.1:8000")
