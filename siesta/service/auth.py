"""Middleware that decides which requests are authorised, and adds security headers to every response.

A request needs an allowed Host, must not be sent by the script of another site, and needs a token unless the service is
reachable from this machine only. The scope of the token is the one that the endpoint declares (`endpoints.py`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as ASGIScope

from siesta.errors import Damaged
from siesta.service.endpoints import API_PREFIX, COOKIE, SAFE_METHODS, Endpoints
from siesta.service.options import ServiceOptions, is_loopback
from siesta.service.problems import Problem, problem_response
from siesta.service.tokens import SCOPES, RateLimiter, Scope, TokenStore

__all__ = ["AuthMiddleware", "Credentials", "TokenVerifier", "cookie_name", "host_name"]

_CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob: data:",
        "media-src 'self' blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
_SECURITY_HEADERS = {
    "Content-Security-Policy": _CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
}


@dataclass(frozen=True)
class Credentials:
    """Token that a request carries, if any, and whether it is in a cookie, which browsers send automatically."""

    token: str | None = None
    by_cookie: bool = False


class TokenVerifier:
    """Checks tokens, and limits how many wrong ones an address may send."""

    def __init__(self, tokens: TokenStore) -> None:
        self._tokens = tokens
        self._limiter = RateLimiter()

    def authorize(self, address: str, credentials: Credentials, needed: Scope | None = None) -> frozenset[Scope]:
        """Return the scopes of a token; raise if it is missing or wrong, or lacks a scope.

        A wrong cookie does not count as a failure, because browsers send an old cookie with every request.

        Args:
            address: Address of the client.
            credentials: Token of the request.
            needed: Scope that the token must have, None for any.
        """
        if wait := self._limiter.seconds_to_wait(address):
            raise Problem(429, "too many wrong tokens: wait a minute", {"Retry-After": str(int(wait) + 1)})
        if credentials.token is None:
            raise Problem(401, "a token is needed: `siesta token new` creates one")
        scopes = self._tokens.scopes(credentials.token)
        if not scopes:
            if not credentials.by_cookie:
                self._limiter.record_failure(address)
            raise Problem(401, "this token is wrong, or was revoked: `siesta token new` creates one")
        if needed is not None and needed not in scopes:
            remedy = f"`siesta token new --scope {needed}` creates one that has it"
            raise Problem(403, f"this token lacks the scope '{needed}': {remedy}")
        return scopes

    def is_valid(self, credentials: Credentials) -> bool:
        """Return whether a token is known and was not revoked."""
        with suppress(Damaged):
            return credentials.token is not None and bool(self._tokens.scopes(credentials.token))
        return False


class AuthMiddleware:
    """Checks Host, origin and token of every request before it reaches a route."""

    def __init__(self, app: ASGIApp, options: ServiceOptions, verifier: TokenVerifier, endpoints: Endpoints) -> None:
        """Create the middleware.

        Args:
            app: Application that receives the authorised requests.
            options: Options of the service.
            verifier: Check of tokens.
            endpoints: Declarations of the scopes.
        """
        self._app = app
        self._options = options
        self._verifier = verifier
        self._endpoints = endpoints

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """Pass a request on with its scopes and credentials in `request.state`, or answer with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add_headers(message, scope["path"])
            await send(message)

        headers = Headers(scope=scope)
        credentials = _read_credentials(headers, accept_cookie=not self._is_allowed_origin(headers))
        try:
            scopes = self._authorize(scope, headers, credentials)
        except Problem as problem:
            response = problem_response(problem)
            if problem.status == 401 and credentials.by_cookie:
                response.delete_cookie(cookie_name(headers), httponly=True, samesite="strict")
            await response(scope, receive, send_with_headers)
            return
        scope.setdefault("state", {}).update(scopes=scopes, credentials=credentials)
        await self._app(scope, receive, send_with_headers)

    def _authorize(self, scope: ASGIScope, headers: Headers, credentials: Credentials) -> Iterable[Scope]:
        """Return what the client may do; raise if it may not do what it requests."""
        self._check_host(headers)
        if scope["method"] not in SAFE_METHODS:
            self._check_origin(headers)
        if self._options.loopback_only:
            return SCOPES
        needed = self._endpoints.needs(scope).scope
        if needed is None:
            return ()
        address = (scope.get("client") or ("",))[0]
        return self._verifier.authorize(address, credentials, needed)

    def _check_host(self, headers: Headers) -> None:
        """Refuse foreign host names, which an attacker may point at this machine (DNS rebinding)."""
        hosts = headers.getlist("host")
        name = host_name(hosts[0]) if len(hosts) == 1 else None
        if name is None or not self._is_allowed_host(name):
            raise Problem(400, "this Host is not allowed: start the service with --allow-host to allow it")

    def _is_allowed_host(self, name: str) -> bool:
        allowed = {host.lower() for host in (self._options.host, *self._options.hosts)}
        if name in allowed or is_loopback(name):
            return True
        # DNS rebinding needs a name: an address in the Host header cannot be pointed elsewhere.
        return not is_loopback(self._options.host) and _is_address(name)

    def _check_origin(self, headers: Headers) -> None:
        """Refuse requests that another site's page makes a browser send."""
        if self._is_allowed_origin(headers):
            return
        site = headers.get("sec-fetch-site")
        if _is_cross_origin(headers) or site not in (None, "same-origin", "none"):
            raise Problem(
                403, "requests from other sites are refused: start the service with --allow-origin to allow one"
            )

    def _is_allowed_origin(self, headers: Headers) -> bool:
        """Return whether the request comes from a site of `--allow-origin`, which needs a token, not our cookie."""
        return headers.get("origin") in self._options.origins and _is_cross_origin(headers)


def _add_headers(message: Message, path: str) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in _SECURITY_HEADERS.items():
        headers.setdefault(name, value)
    # Files of the page may be cached, but browsers have to revalidate them.
    headers.setdefault("Cache-Control", "no-store" if path.startswith(f"{API_PREFIX}/") else "no-cache")


def _is_cross_origin(headers: Headers) -> bool:
    origin = headers.get("origin")
    return origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower()


def host_name(header: str) -> str | None:
    """Return the name or address in a Host header in lower case, None if the header is malformed.

    Example:
        >>> host_name("LocalHost:8000"), host_name("[::1]:8000"), host_name("a@b")
        ('localhost', '::1', None)
    """
    try:
        parts = urlsplit(f"//{header}")
        _ = parts.port  # raises ValueError for a wrong port
    except ValueError:
        return None
    return parts.hostname if parts.netloc == header and "@" not in header else None


def _is_address(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


def cookie_name(headers: Headers) -> str:
    """Return the name of the cookie, which contains the port, because browsers share cookies between ports.

    Example:
        >>> cookie_name(Headers({"host": "birds.example:8001"})), cookie_name(Headers({"host": "birds.example"}))
        ('siesta_token_8001', 'siesta_token')
    """
    port = headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isdecimal() else COOKIE


def _read_credentials(headers: Headers, accept_cookie: bool) -> Credentials:
    """Return the token in the Authorization header, or else in the cookie."""
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and secret.strip():
        return Credentials(secret.strip())
    cookie = cookie_parser(headers.get("cookie", "")).get(cookie_name(headers)) if accept_cookie else None
    return Credentials(cookie, by_cookie=cookie is not None)
