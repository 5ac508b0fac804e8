"""The service of a sleeper: it trains in place of devices that send it packs, and has no learner of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from fastapi import FastAPI
from starlette.types import ASGIApp

from siesta import __version__
from siesta.errors import BadInput
from siesta.extras import require_torch
from siesta.files import disk_errors
from siesta.service.app import add_schema
from siesta.service.auth import AuthMiddleware, TokenVerifier
from siesta.service.endpoints import Endpoints
from siesta.service.limits import LimitsMiddleware
from siesta.service.options import ServiceOptions
from siesta.service.packs import PackQueue
from siesta.service.problems import add_problem_handlers
from siesta.service.routes import packs
from siesta.service.server import (
    bound_socket,
    check_tls,
    new_token,
    private_files,
    public_address,
    run_app,
    warn_without_tls,
)
from siesta.service.tokens import PACKS, TokenStore
from siesta.store.schema import DATABASE

__all__ = ["make_sleeper_app", "serve_sleeper"]


def serve_sleeper(
    folder: Path, options: ServiceOptions, most: int, threads: int, nice: int, notify: Callable[[str], None]
) -> None:
    """Sleep for devices until SIGTERM or Ctrl-C.

    Args:
        folder: Where tokens and packs are kept; it is made if it does not exist.
        options: Options of the service.
        most: Number of packs at a time.
        threads: Threads of a sleep.
        nice: Niceness of its process.
        notify: Called with each message for the user.
    """
    require_torch("sleep")
    check_tls(options)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    if (folder / DATABASE).exists():
        raise BadInput(f"{folder} is a learner: give another folder for the packs")
    with bound_socket(options) as listener, private_files():
        with disk_errors(folder):
            folder.mkdir(mode=0o700, exist_ok=True)
        queue = PackQueue(folder / PACKS, most, threads, nice)
        tokens = TokenStore(folder)
        new_token(tokens, options, "sleep", notify)
        notify(f"Sleeping for others at {public_address(options, listener)}")
        warn_without_tls(options, notify)
        asyncio.run(_run(make_sleeper_app(queue, folder, options, tokens), queue, options, listener))
    notify("The sleeper has stopped; packs that it had are deleted.")


async def _run(app: ASGIApp, queue: PackQueue, options: ServiceOptions, listener: socket.socket) -> None:
    async with _running(queue):
        await run_app(lambda _: app, options, listener)


@contextlib.asynccontextmanager
async def _running(queue: PackQueue) -> AsyncIterator[None]:
    """Let a queue start sleeps inside of the block."""
    task = asyncio.create_task(queue.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def make_sleeper_app(queue: PackQueue, folder: Path, options: ServiceOptions, tokens: TokenStore) -> FastAPI:
    """Return the application of a sleeper.

    Args:
        queue: The packs that it has.
        folder: Its folder; errors show its name only.
        options: Options of the service; their limit on a body is that on a pack.
        tokens: Tokens that it accepts.
    """
    app = FastAPI(
        title="siesta sleeper",
        version=__version__,
        summary="Trains in place of devices that send their memory, and hands back the weights.",
        openapi_url=None,  # served by `add_schema`
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.packs = queue
    app.include_router(packs.router)
    add_problem_handlers(app, folder, packs.router.routes)
    add_schema(app)
    endpoints = Endpoints(packs.router.routes)
    app.add_middleware(LimitsMiddleware, limits=options.limits, endpoints=endpoints)
    app.add_middleware(AuthMiddleware, options=options, verifier=TokenVerifier(tokens), endpoints=endpoints)
    return app
