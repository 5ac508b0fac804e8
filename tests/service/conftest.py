"""Servers and clients for the tests of the service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter

from siesta import Siesta
from siesta.service.app import ROUTERS, make_app
from siesta.service.client import Client
from siesta.service.metrics import Metrics
from siesta.service.options import ServiceOptions
from siesta.service.worker import LearnerThread
from tests.service.event_loop import run_async
from tests.service.page_fixtures import browser, open_page, served, service
from tests.service.server_process import IMAGE_SIZE, ServerProcess, make_image

__all__ = ["browser", "open_page", "served", "service"]  # fixtures of the page's tests

StartServer = Callable[..., ServerProcess]
Send = Callable[..., httpx.Response]


@pytest.fixture(scope="session")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartServer]:
    """Start server processes, each with a new learner unless a path is given; all are stopped at the end."""
    servers: list[ServerProcess] = []

    def start(*options: str, path: Path | None = None, memory: str = "1MB") -> ServerProcess:
        if path is None:
            path = tmp_path_factory.mktemp("served") / "colours.siesta"
            Siesta.create(path, memory=memory, image_size=IMAGE_SIZE).close()
        servers.append(ServerProcess(path, *options))
        return servers[-1]

    yield start
    for server in servers:
        server.process.terminate()  # all of them, before any is waited for
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def server(start_server: StartServer) -> ServerProcess:
    """A server with default options that many tests share; it never sleeps."""
    return start_server()


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    """A client of the shared server, whose learner is emptied before the test."""
    with server.client() as client:
        for known in client.classes():
            client.forget(known.id)
        yield client


@pytest.fixture
def taught(client: Client) -> Client:
    """A client of the shared server, whose learner knows two red and two blue images."""
    client.learn([make_image("red", 1), make_image("red", 2)], "red")
    client.learn([make_image("blue", 1), make_image("blue", 2)], ["blue", "blue"])
    return client


@pytest.fixture
def learner_path(tmp_path: Path) -> Path:
    """The folder of a new learner."""
    Siesta.create(tmp_path / "a.siesta", memory="1MB", image_size=IMAGE_SIZE).close()
    return tmp_path / "a.siesta"


@pytest.fixture
def service_options() -> ServiceOptions:
    """The options of the application of `send`; tests replace them by parameters."""
    return ServiceOptions()


@pytest.fixture
def service_routers() -> Sequence[APIRouter]:
    """The routers of the application of `send`; tests replace them by parameters."""
    return ROUTERS


@pytest.fixture
def send(learner_path: Path, service_options: ServiceOptions, service_routers: Sequence[APIRouter]) -> Iterator[Send]:
    """Send requests to an application in this process."""
    metrics = Metrics()
    worker = LearnerThread(learner_path, metrics)
    worker.open()
    app = make_app(worker, service_options, metrics, asyncio.Event(), service_routers)

    def send_request(method: str, path: str, **options: Any) -> httpx.Response:
        async def request() -> httpx.Response:
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, path, **options)

        return run_async(request())

    yield send_request
    worker.close()
