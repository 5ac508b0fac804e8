"""What endpoints need: declared at every route, enforced before the body is read, and part of the OpenAPI schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.responses import StreamingResponse
from starlette.types import Scope

from siesta.service.app import ROUTERS
from siesta.service.endpoints import ASK, OPEN, TEACH, Endpoints, Needs, is_endless, needs_of
from siesta.service.multipart import ImageRoute
from siesta.service.options import ServiceOptions
from siesta.service.problems import add_problem_handlers
from siesta.service.sse import EventStreamResponse
from siesta.service.tokens import TokenStore
from tests.service.conftest import Send
from tests.service.event_loop import run_async

PUBLIC = ServiceOptions(host="0.0.0.0")
ROUTES = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
OPEN_ENDPOINTS = {
    ("POST", "/v1/session"),
    ("DELETE", "/v1/session"),
    *((method, path) for method in ("GET", "HEAD") for path in ("/healthz", "/readyz")),
}


def method_of(route: APIRoute) -> str:
    assert route.methods is not None
    (method,) = route.methods
    return method


def address_of(route: APIRoute) -> str:
    return route.path.format(class_id=1, sample_id=1, number=1)


def bearer(path: Path, scope: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {TokenStore(path).new(scope)}"}


# -- the endpoints of the service -------------------------------------------------------------------------------------


def test_every_endpoint_needs_a_token_except_a_few() -> None:
    assert {(method_of(route), route.path) for route in ROUTES if needs_of(route).scope is None} == OPEN_ENDPOINTS
    teaching = {(method_of(route), route.path) for route in ROUTES if needs_of(route).scope == "teach"}
    changing = {(method_of(route), route.path) for route in ROUTES if method_of(route) not in ("GET", "HEAD")}
    assert teaching == changing - OPEN_ENDPOINTS - {("POST", "/v1/predict"), ("POST", "/v1/vectors/predict")}


@pytest.mark.parametrize("service_options", [PUBLIC])
def test_every_endpoint_refuses_a_request_without_its_scope(send: Send, learner_path: Path) -> None:
    ask = bearer(learner_path, "ask")
    for route in ROUTES:
        needs = needs_of(route)
        method = method_of(route)
        address = address_of(route)
        if needs.scope is not None:
            response = send(method, address)
            assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer"), address
        if needs.scope == "teach":
            assert send(method, address, headers=ask).status_code == 403, address


@pytest.mark.parametrize("service_options", [PUBLIC])
def test_the_schema_has_the_scopes_of_every_endpoint(send: Send) -> None:
    schema = send("GET", "/openapi.json").json()
    for route in ROUTES:
        if not route.include_in_schema:
            continue
        operation, scope = schema["paths"][route.path][method_of(route).lower()], needs_of(route).scope
        expected = [{"bearer": [scope]}, {"cookie": [scope]}] if scope else []
        assert operation.get("security", []) == expected, route.path


def test_endpoints_that_take_images_occupy_the_queue_and_only_events_have_no_end() -> None:
    images = {"/v1/learn", "/v1/predict", "/v1/reject"}
    taking = {route.path for route in ROUTES if needs_of(route).images}
    assert taking == images | {"/v1/vectors/learn", "/v1/vectors/predict", "/v1/vectors/reject"}
    assert {route.path for route in ROUTES if needs_of(route).endless} == {"/v1/events"}
    app = FastAPI()
    for router in ROUTERS:
        app.include_router(router)
    for path, operations in app.openapi()["paths"].items():
        for operation in operations.values():
            has_form = "multipart/form-data" in operation.get("requestBody", {}).get("content", {})
            assert has_form == (path in images), path


# -- an endpoint that is added ----------------------------------------------------------------------------------------


class CountResponse(BaseModel):
    """Schema of the added endpoint."""

    count: int


added = APIRouter(prefix="/v1")


@added.post("/count", dependencies=[TEACH])
async def count() -> CountResponse:
    """Count to three."""
    return CountResponse(count=3)


@pytest.mark.parametrize("service_options", [PUBLIC])
@pytest.mark.parametrize("service_routers", [(*ROUTERS, added)])
def test_an_added_endpoint_has_its_scope_enforced_and_in_the_schema(send: Send, learner_path: Path) -> None:
    assert send("POST", "/v1/count").status_code == 401
    refused = send("POST", "/v1/count", headers=bearer(learner_path, "ask"))
    assert (refused.status_code, "lacks the scope 'teach'" in refused.json()["detail"]) == (403, True)
    answered = send("POST", "/v1/count", headers=bearer(learner_path, "teach"))
    assert (answered.status_code, answered.json()) == (200, {"count": 3})
    schema = send("GET", "/openapi.json").json()
    assert schema["paths"]["/v1/count"]["post"]["security"] == [{"bearer": ["teach"]}, {"cookie": ["teach"]}]


@pytest.mark.parametrize("dependencies", [[], [ASK, OPEN]])
def test_a_route_has_to_declare_exactly_one_need(dependencies: list[Any]) -> None:
    router = APIRouter()
    router.add_api_route("/v1/count", count, dependencies=dependencies)
    with pytest.raises(ValueError, match="/v1/count has to declare one of ASK, TEACH, SLEEP and OPEN"):
        Endpoints(router.routes)


def test_a_route_without_the_middleware_refuses_everything() -> None:
    app = FastAPI()
    app.include_router(added)
    add_problem_handlers(app, Path("a.siesta"), added.routes)

    async def request() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return await client.post("/v1/count")

    response = run_async(request())
    assert (response.status_code, response.json()["detail"]) == (403, "this needs the scope teach")


# -- the lookup -------------------------------------------------------------------------------------------------------


def needs(method: str, path: str) -> Needs:
    scope: Scope = {"type": "http", "method": method, "path": path}
    return Endpoints(ROUTES).needs(scope)


def test_a_request_needs_what_its_route_declares() -> None:
    assert needs("GET", "/v1/classes") == Needs("ask")
    assert needs("POST", "/v1/predict") == Needs("ask", images=True)
    assert needs("POST", "/v1/learn") == Needs("teach", images=True)
    assert needs("GET", "/v1/events") == Needs("ask", endless=True)
    assert needs("GET", "/metrics") == Needs("ask")
    assert needs("DELETE", "/v1/session") == needs("GET", "/healthz") == Needs(None)


def test_an_address_without_an_endpoint_is_open_unless_it_is_the_apis() -> None:
    for path in ("/", "/static/main.js", "/openapi.json", "/v1", "/nothing"):
        assert needs("GET", path) == needs("POST", path) == Needs(None)
    assert needs("GET", "/v1/nothing").scope == "ask"
    assert needs("PUT", "/v1/nothing").scope == "teach"


def test_a_wrong_method_needs_a_token_where_the_address_does() -> None:
    assert [needs(method, "/v1/classes/1").scope for method in ("GET", "OPTIONS", "PUT")] == ["ask", "ask", "teach"]
    assert needs("HEAD", "/metrics").scope == "ask"
    assert needs("PUT", "/v1/session").scope is None


@pytest.mark.parametrize("service_options", [PUBLIC])
def test_a_line_break_after_an_address_is_no_way_around_its_scope(send: Send) -> None:
    for method, path in (("GET", "/metrics"), ("GET", "/v1/info"), ("POST", "/v1/learn")):
        assert send(method, f"{path}%0A").status_code == 401, path
    assert needs("POST", "/v1/learn\n").images


def test_a_route_is_endless_if_its_response_is() -> None:
    router = APIRouter(route_class=ImageRoute)
    for path, response_class in (("/plain", None), ("/stream", StreamingResponse), ("/events", EventStreamResponse)):
        options: dict[str, Any] = {} if response_class is None else {"response_class": response_class}
        router.add_api_route(path, count, dependencies=[ASK], response_model=None, **options)
    assert [is_endless(route) for route in router.routes] == [False, False, True]
    assert not is_endless(None)
