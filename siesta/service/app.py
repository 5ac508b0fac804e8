"""The service put together: routes, the page, and what stands before them."""

from __future__ import annotations

import asyncio
import mimetypes
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from pydantic import BaseModel
from starlette.middleware.cors import CORSMiddleware
from starlette.staticfiles import StaticFiles

from siesta import __version__
from siesta.jobs import SleepJob
from siesta.service import front, lessons, nights
from siesta.service.desk import Desk
from siesta.service.door import Door
from siesta.service.events import Streams
from siesta.service.guard import Guard, Keeper
from siesta.service.metrics import Metrics, Timed
from siesta.service.options import Options
from siesta.service.parts import Parts
from siesta.service.problems import answer_problems
from siesta.service.shapes import Changed
from siesta.service.tokens import Tokens
from siesta.service.uploads import Uploads

__all__ = ["make_app"]

_PAGE = Path(__file__).parent / "static"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}  # whatever the system thinks


def make_app(desk: Desk, options: Options, metrics: Metrics, closing: asyncio.Event) -> FastAPI:
    """The whole of it, around a desk that is open.

    Args:
        desk: Where requests meet the learner.
        options: What the service is started with.
        metrics: That the desk counts in.
        closing: To be set when it shall end, so that streams do.
    """
    app = FastAPI(
        title="siesta",
        version=__version__,
        summary="A picture classifier that learns as it goes and consolidates while it sleeps.",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    job, keeper = SleepJob(desk.path), Keeper(Tokens(desk.path))

    def look() -> dict[str, BaseModel]:
        changed = Changed(revision=desk.revision, generation=desk.generation)
        return {"sleep": nights.shape_of(job.status()), "changed": changed}

    app.state.parts = Parts(
        desk, Uploads(options.limits, desk.image_size), job, keeper, metrics, options, Streams(look, closing)
    )
    routers = (lessons.router, nights.router, front.router)
    for router in routers:
        app.include_router(router)
    answer_problems(app, desk.path, [route for router in routers for route in router.routes])

    for ending, kind in _TYPES.items():
        mimetypes.add_type(kind, ending)

    @app.head("/", include_in_schema=False)
    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(_PAGE / "index.html")

    app.mount("/static", StaticFiles(directory=_PAGE), name="static")
    app.add_middleware(Door, limits=options.limits)
    app.add_middleware(Guard, options=options, keeper=keeper)
    app.add_middleware(Timed, metrics=metrics)
    if options.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=options.origins,
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
        )
    return app
