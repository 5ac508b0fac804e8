"""Who may come in: the right Host, no other site's script, a token where one is needed; and what every answer says.

It stands before everything else, knows nothing of routes but their scopes, and lets through what it does not refuse.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from siesta.errors import Damaged
from siesta.service import tokens
from siesta.service.options import Options, is_loopback
from siesta.service.problems import Problem, problem_response

__all__ = ["Guard", "Keeper", "Offered", "cookie_name", "host_name", "needed_scope"]

_SAFE = ("GET", "HEAD", "OPTIONS")
_POLICY = "; ".join(
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
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
}


def needed_scope(method: str, path: str) -> tokens.Scope | None:
    """What a request needs; None for what anybody may see: the page itself, its schema, whether it lives."""
    if path == "/metrics":
        return "ask"
    if not path.startswith("/v1/") or path == "/v1/session":
        return None
    return "ask" if method in _SAFE or path == "/v1/predict" else "teach"


@dataclass(frozen=True)
class Offered:
    """A token that came with a request, if one did, and whether by a cookie, which a browser sends by itself."""

    token: str | None = None
    by_cookie: bool = False


class Keeper:
    """Knows the tokens, and who tried wrong ones."""

    def __init__(self, known: tokens.Tokens) -> None:
        self._known, self._tries = known, tokens.Tries()

    def admit(self, address: str, offered: Offered, needed: tokens.Scope | None = None) -> frozenset[tokens.Scope]:
        """What a token allows; refuses wrong ones, those that come too often, and those that do not allow `needed`.

        A wrong cookie is no try: a browser that has an old one sends it with everything.
        """
        if wait := self._tries.seconds_to_wait(address):
            raise Problem(429, "too many wrong tokens: wait a minute", {"Retry-After": str(int(wait) + 1)})
        if offered.token is None:
            raise Problem(401, "a token is needed: `siesta token new` makes one")
        found = self._known.scopes(offered.token)
        if not found:
            if not offered.by_cookie:
                self._tries.wrong(address)
            raise Problem(401, "this token is wrong, or was revoked: `siesta token new` makes one")
        if needed is not None and needed not in found:
            raise Problem(403, f"this token may not {needed}: `siesta token new --scope {needed}` makes one that may")
        return found

    def still_knows(self, offered: Offered) -> bool:
        """Whether a token that was admitted was not revoked since."""
        with suppress(Damaged):
            return offered.token is not None and bool(self._known.scopes(offered.token))
        return False


class Guard:
    """The first that a request meets."""

    def __init__(self, app: ASGIApp, options: Options, keeper: Keeper) -> None:
        """Takes what it guards, what the service was started with, and who knows the tokens."""
        self._app, self._options, self._keeper = app, options, keeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request through, or says why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                api = scope["path"].startswith("/v1/")
                headers.setdefault("Cache-Control", "no-store" if api else "no-cache")  # the page: kept, asked for anew
            await send(message)

        headers = Headers(scope=scope)
        offered = _offered(headers, cookies=not self._is_friend(headers))
        try:
            scopes = self._admitted(scope, headers, offered)
        except Problem as problem:
            response = problem_response(problem)
            if problem.status == 401 and offered.by_cookie:
                response.delete_cookie(cookie_name(headers), httponly=True, samesite="strict")
            await response(scope, receive, marked)
            return
        scope.setdefault("state", {}).update(scopes=scopes, offered=offered)
        await self._app(scope, receive, marked)

    def _admitted(self, scope: Scope, headers: Headers, offered: Offered) -> Iterable[tokens.Scope]:
        """What this one may do; refuses what it may not."""
        self._check_host(headers)
        if scope["method"] not in _SAFE:
            self._check_site(headers)
        if self._options.local:
            return tokens.SCOPES
        needed = needed_scope(scope["method"], scope["path"])
        if needed is None:
            return ()
        return self._keeper.admit((scope.get("client") or ("",))[0], offered, needed)

    def _check_host(self, headers: Headers) -> None:
        """A name of somebody else's that leads here (DNS rebinding) must not make us a part of their site."""
        hosts = headers.getlist("host")
        name = host_name(hosts[0]) if len(hosts) == 1 else None
        if name is None or not self._is_ours(name):
            raise Problem(400, "this service does not answer to that Host: start it with --allow-host to let it")

    def _is_ours(self, name: str) -> bool:
        if name in {given.lower() for given in (self._options.host, *self._options.hosts)} or is_loopback(name):
            return True
        return not is_loopback(self._options.host) and _is_address(name)  # nobody can point an address elsewhere

    def _check_site(self, headers: Headers) -> None:
        """Another site's page may make a browser send a request here; the browser says where it comes from."""
        if self._is_friend(headers):
            return
        site = headers.get("sec-fetch-site")
        if _is_foreign(headers) or site not in (None, "same-origin", "none"):
            raise Problem(403, "requests from other sites are refused: start it with --allow-origin to let them in")

    def _is_friend(self, headers: Headers) -> bool:
        """Whether a request comes from another site whose scripts may call us: with a token, not with our cookie."""
        return headers.get("origin") in self._options.origins and _is_foreign(headers)


def _is_foreign(headers: Headers) -> bool:
    origin = headers.get("origin")
    return origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower()


def host_name(header: str) -> str | None:
    """The name or address in a Host header, in lower case; None if it has none.

    Example:
        >>> host_name("LocalHost:8000"), host_name("[::1]:8000"), host_name("a@b")
        ('localhost', '::1', None)
    """
    try:
        parts = urlsplit(f"//{header}")
        whole = parts.netloc == header and "@" not in header and parts.port is not False  # a wrong port raises
        return parts.hostname if whole else None
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


def cookie_name(headers: Headers) -> str:
    """Of our cookie: browsers share cookies between all ports of a host, so it has the one that was asked in it.

    Example:
        >>> cookie_name(Headers({"host": "birds.example:8001"})), cookie_name(Headers({"host": "birds.example"}))
        ('siesta_token_8001', 'siesta_token')
    """
    port = headers.get("host", "").rpartition(":")[2]
    return f"siesta_token_{port}" if port.isdecimal() else "siesta_token"


def _offered(headers: Headers, cookies: bool) -> Offered:
    """The token that comes with a request."""
    kind, _, secret = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and secret.strip():
        return Offered(secret.strip())
    cookie = cookie_parser(headers.get("cookie", "")).get(cookie_name(headers)) if cookies else None
    return Offered(cookie, by_cookie=cookie is not None)
