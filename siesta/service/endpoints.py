"""What an endpoint needs, declared at its route, and the lookup of it before a request is handled.

    @router.post("/predict", dependencies=[ASK])

Every route declares `ASK`, `TEACH`, `SLEEP` or `OPEN`; the application refuses to start with one that does not. A
route takes images or vectors if its router says so (`route_class=ImageRoute` or `QueuedRoute`), and has no time limit
if it answers with an `EventStreamResponse`. The middleware looks these needs up, because it refuses requests before
their body is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import Depends, Request, Security, params
from fastapi.routing import APIRoute
from fastapi.security import APIKeyCookie, HTTPBearer, SecurityScopes
from starlette.routing import BaseRoute, Match
from starlette.types import Scope as ASGIScope

from siesta.service.multipart import QueuedRoute
from siesta.service.problems import Problem
from siesta.service.sse import EventStreamResponse
from siesta.service.tokens import Scope

__all__ = [
    "API_PREFIX",
    "ASK",
    "COOKIE",
    "OPEN",
    "SAFE_METHODS",
    "SLEEP",
    "TEACH",
    "Endpoints",
    "Needs",
    "is_endless",
    "needs_of",
]

API_PREFIX = "/v1"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
COOKIE = "siesta_token"
_BEARER_SCHEME = HTTPBearer(
    scheme_name="bearer",
    description="A token of `siesta token new`. None is needed where the service is reachable from its machine only.",
    auto_error=False,
)
_COOKIE_SCHEME = APIKeyCookie(
    name=COOKIE,
    scheme_name="cookie",
    description="The cookie that `POST /v1/session` sets for browsers; its name ends in the service's port.",
    auto_error=False,
)


async def _check_scopes(
    request: Request,
    needed: SecurityScopes,
    _bearer: Annotated[object, Security(_BEARER_SCHEME)],
    _cookie: Annotated[object, Security(_COOKIE_SCHEME)],
) -> None:
    """Refuse a request that the middleware let in without the scopes of its route.

    The middleware has checked the token before the body was read; this checks it a second time. The parameters for the
    two schemes put them into the OpenAPI schema.
    """
    if not set(needed.scopes) <= set(getattr(request.state, "scopes", ())):
        raise Problem(403, f"this needs the scope {' and '.join(needed.scopes)}")


async def _let_in() -> None:
    """Accept every request."""


# Declarations for `dependencies=[...]` of a route.
ASK: params.Depends = Security(_check_scopes, scopes=["ask"])
TEACH: params.Depends = Security(_check_scopes, scopes=["teach"])
SLEEP: params.Depends = Security(_check_scopes, scopes=["sleep"])
OPEN: params.Depends = Depends(_let_in)
_SCOPES: tuple[tuple[params.Depends, Scope | None], ...] = (
    (ASK, "ask"),
    (TEACH, "teach"),
    (SLEEP, "sleep"),
    (OPEN, None),
)


@dataclass(frozen=True)
class Needs:
    """What an endpoint needs.

    Attributes:
        scope: Scope that the request's token must have, None if it needs no token.
        images: Whether it takes images or vectors; the number of such requests at a time is limited.
        endless: Whether its response has no end and hence no time limit.
    """

    scope: Scope | None
    images: bool = False
    endless: bool = False


def needs_of(route: APIRoute) -> Needs:
    """Return what a route declares; raise if it does not declare exactly one of `ASK`, `TEACH`, `SLEEP` and `OPEN`.

    Example:
        >>> from fastapi import APIRouter
        >>> router = APIRouter(route_class=QueuedRoute)
        >>> router.add_api_route("/v1/count", lambda: 3, methods=["POST"], dependencies=[ASK])
        >>> needs_of(router.routes[0])
        Needs(scope='ask', images=True, endless=False)
    """
    declared = [scope for dependency, scope in _SCOPES if any(dependency is other for other in route.dependencies)]
    if len(declared) != 1:
        raise ValueError(f"the route {route.path} has to declare one of ASK, TEACH, SLEEP and OPEN in its dependencies")
    return Needs(declared[0], images=isinstance(route, QueuedRoute), endless=is_endless(route))


def is_endless(route: object) -> bool:
    """Return whether the response of a route has no end."""
    response_class = getattr(route, "response_class", None)
    return isinstance(response_class, type) and issubclass(response_class, EventStreamResponse)


class Endpoints:
    """The endpoints of an application with what each of them needs."""

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._endpoints = [(route, needs_of(route)) for route in routes if isinstance(route, APIRoute)]

    def needs(self, request: ASGIScope) -> Needs:
        """Return what the endpoint that will handle a request needs."""
        others = []
        for route, needs in self._endpoints:
            match, _ = route.matches(request)
            if match is Match.FULL:
                return needs
            if match is Match.PARTIAL:
                others.append(needs)
        return _needs_without_endpoint(request, others)


def _needs_without_endpoint(request: ASGIScope, others: list[Needs]) -> Needs:
    """Return the needs of a request that no endpoint handles, given those of other methods at its address.

    Only a client with a token learns which addresses of the API exist.
    """
    is_open = any(needs.scope is None for needs in others)
    if is_open or not (others or request["path"].startswith(f"{API_PREFIX}/")):
        scope: Scope | None = None
    else:
        scope = "ask" if request["method"] in SAFE_METHODS else "teach"
    return replace(others[0] if others else Needs(None), scope=scope)
