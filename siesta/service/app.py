"""Assembly of the ASGI application: routes, page, error handlers and middleware."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse
from pydantic import BaseModel
from starlette.middleware.cors import CORSMiddleware
from starlette.staticfiles import StaticFiles

from siesta import __version__
from siesta.service.auth import AuthMiddleware, TokenVerifier, cookie_name
from siesta.service.deps import ServiceContext
from siesta.service.endpoints import Endpoints
from siesta.service.limits import LimitsMiddleware
from siesta.service.metrics import Metrics, MetricsMiddleware
from siesta.service.options import ServiceOptions
from siesta.service.problems import add_problem_handlers
from siesta.service.routes import classes, learn, sleep, system, vectors
from siesta.service.schemas import ChangedEvent
from siesta.service.sse import EventStreams
from siesta.service.tokens import TokenStore
from siesta.service.uploads import UploadDecoder
from siesta.service.worker import LearnerThread
from siesta.sleep.job import SleepJob

__all__ = ["ROUTERS", "add_schema", "make_app"]

_STATIC = Path(__file__).parent / "static"
# The system's own table of types may lack these or have others, and browsers refuse scripts of a wrong type.
_MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
ROUTERS = (learn.router, vectors.router, classes.router, sleep.router, system.router)


def make_app(
    worker: LearnerThread,
    options: ServiceOptions,
    metrics: Metrics,
    closing: asyncio.Event,
    routers: Sequence[APIRouter] = ROUTERS,
) -> FastAPI:
    """Return the application that serves a learner.

    Args:
        worker: Thread that owns the learner; it is open already.
        options: Options of the service.
        metrics: Counters that the worker updates, too.
        closing: Set by the server when it stops, which ends all event streams.
        routers: Routers with the endpoints; each of their routes declares what it needs.
    """
    app = FastAPI(
        title="siesta",
        version=__version__,
        summary="An image classifier that learns continually and consolidates while it sleeps.",
        openapi_url=None,  # served by `add_schema`
        docs_url=None,  # FastAPI's pages load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,
    )
    verifier = TokenVerifier(TokenStore(worker.path))
    app.state.context = _make_context(worker, options, metrics, verifier, closing)
    for router in routers:
        app.include_router(router)
    routes = [route for router in routers for route in router.routes]
    add_problem_handlers(app, worker.path, routes)
    _add_page(app)
    add_schema(app)
    _add_middleware(app, options, metrics, verifier, Endpoints(routes))
    return app


def _make_context(
    worker: LearnerThread, options: ServiceOptions, metrics: Metrics, verifier: TokenVerifier, closing: asyncio.Event
) -> ServiceContext:
    job = SleepJob(worker.path)

    def snapshot() -> dict[str, BaseModel]:
        changed = ChangedEvent(revision=worker.revision, generation=worker.generation)
        return {"sleep": sleep.status_response(job.status()), "changed": changed}

    return ServiceContext(
        worker=worker,
        uploads=UploadDecoder(options.limits, worker.input),
        job=job,
        verifier=verifier,
        metrics=metrics,
        options=options,
        streams=EventStreams(snapshot, closing),
    )


def _add_page(app: FastAPI) -> None:
    for suffix, media_type in _MEDIA_TYPES.items():
        mimetypes.add_type(media_type, suffix)

    @app.head("/", include_in_schema=False)
    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(_STATIC / "index.html")

    app.mount("/static", StaticFiles(directory=_STATIC), name="static")


def add_schema(app: FastAPI) -> None:
    """Serve the OpenAPI schema of an application."""

    @app.head("/openapi.json", include_in_schema=False)
    @app.get("/openapi.json", include_in_schema=False)
    async def schema(request: Request) -> JSONResponse:
        document = deepcopy(app.openapi())
        document["components"]["securitySchemes"]["cookie"]["name"] = cookie_name(request.headers)
        return JSONResponse(document)


def _add_middleware(
    app: FastAPI, options: ServiceOptions, metrics: Metrics, verifier: TokenVerifier, endpoints: Endpoints
) -> None:
    """Add the middleware, innermost first."""
    app.add_middleware(LimitsMiddleware, limits=options.limits, endpoints=endpoints)
    app.add_middleware(AuthMiddleware, options=options, verifier=verifier, endpoints=endpoints)
    app.add_middleware(MetricsMiddleware, metrics=metrics)
    if options.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=options.origins,
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
        )
