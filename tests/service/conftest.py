"""A service for a module's tests, and one for those that want it otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from siesta import Siesta
from siesta.service.client import Client
from tests.service.page_fixtures import browser, open_page, served, service
from tests.service.running import SIZE, Running, picture

__all__ = ["browser", "open_page", "served", "service"]  # fixtures of the page's tests

Serve = Callable[..., Running]


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Starts services, each with a learner of its own unless one is given; all are ended."""
    started: list[Running] = []

    def start(*options: str, path: Path | None = None, memory: str = "1MB") -> Running:
        if path is None:
            path = tmp_path_factory.mktemp("served") / "colours.siesta"
            Siesta.create(path, memory=memory, image_size=SIZE).close()
        started.append(Running(path, *options))
        return started[-1]

    yield start
    for one in started:
        one.end()


@pytest.fixture(scope="module")
def running(serve: Serve) -> Running:
    """One that all tests of a module share."""
    return serve()


@pytest.fixture
def client(running: Running) -> Iterator[Client]:
    """Of the shared service, whose learner knows nothing yet, or nothing any more."""
    with running.client() as made:
        for known in made.classes():
            made.forget(known.id)
        yield made


@pytest.fixture
def taught(client: Client) -> Client:
    """The same, when it knows red and blue."""
    client.learn([picture("red", 1), picture("red", 2)], "red")
    client.learn([picture("blue", 1), picture("blue", 2)], ["blue", "blue"])
    return client
