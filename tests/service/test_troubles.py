"""Disks that are full, folders that are taken away, databases that are damaged: said in words, never acknowledged."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from siesta import Siesta
from siesta.errors import DiskRefused
from siesta.service.app import make_app
from siesta.service.desk import Desk
from siesta.service.metrics import Metrics
from siesta.service.options import Options
from tests.service.running import SIZE, picture

Ask = Callable[..., httpx.Response]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Siesta.create(tmp_path / "a.siesta", memory="1MB", image_size=SIZE).close()
    return tmp_path / "a.siesta"


@pytest.fixture
def ask(path: Path) -> Iterator[Ask]:
    """A service in this process, that knows red and blue."""
    desk = Desk(path, metrics := Metrics())
    desk.open()
    app = make_app(desk, Options(), metrics, asyncio.Event())

    def send(method: str, address: str, **request: Any) -> httpx.Response:
        async def sent() -> httpx.Response:
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, address, **request)

        with ThreadPoolExecutor(1) as pool:  # the browser of other tests has a loop in this thread
            return pool.submit(lambda: asyncio.run(sent())).result()

    for label in ("red", "blue"):
        assert learn(send, label).status_code == 200
    yield send
    desk.close()


def learn(ask: Ask, label: str) -> httpx.Response:
    return ask("POST", "/v1/learn", files={"image": picture("red")}, data={"label": label})


def said(response: httpx.Response) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, response.json()["detail"]


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_acknowledged_when_the_folder_was_taken_away(ask: Ask, path: Path, replaced: bool) -> None:
    assert ask("GET", "/readyz").status_code == 200
    shutil.rmtree(path)
    if replaced:
        Siesta.create(path.with_name("other.siesta"), memory="1MB", image_size=SIZE).close()
        path.with_name("other.siesta").rename(path)
    gone = (503, "a.siesta was removed, moved or replaced while it was open: open it anew")
    assert said(learn(ask, "red")) == gone
    assert said(ask("DELETE", "/v1/classes/1")) == gone
    assert said(ask("GET", "/readyz")) == gone
    assert ask("POST", "/v1/predict", files={"image": picture("red")}).status_code == 200, "it still knows"


def test_nor_when_it_is_taken_away_while_it_learns(ask: Ask, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = Siesta.learn_many

    def learn_many(learner: Siesta, images: Any, labels: Any) -> list[int]:
        ids = really(learner, images, labels)
        shutil.rmtree(path)
        return ids

    monkeypatch.setattr(Siesta, "learn_many", learn_many)
    assert learn(ask, "red").status_code == 503


def test_a_full_disk_is_no_fault_of_who_asks(ask: Ask, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise DiskRefused(f"the disk of {path} is full: nothing was changed, free some room and try again")

    for name in ("learn_many", "forget", "forget_sample", "rename", "merge", "correct", "sleep_async"):
        monkeypatch.setattr(Siesta, name, full)
    asked = [
        learn(ask, "red"),
        ask("DELETE", "/v1/classes/1"),
        ask("PATCH", "/v1/classes/1", json={"label": "pink"}),
        ask("POST", "/v1/classes/1/merge", json={"into": 2}),
        ask("DELETE", "/v1/samples/1"),
        ask("PATCH", "/v1/samples/1", json={"label": "pink"}),
        ask("POST", "/v1/sleep", json={"seconds": 1}),
    ]
    for response in asked:
        assert said(response) == (
            503,
            "the disk of a.siesta is full: nothing was changed, free some room and try again",
        )
        assert response.headers["retry-after"] == "1"


def test_damage_is_said_and_remembered(ask: Ask, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with sqlite3.connect(path / "store.sqlite") as other:
        other.execute("DROP TABLE audit")
    other.close()
    with caplog.at_level(logging.ERROR):
        status, words = said(ask("GET", "/v1/info"))
    assert status == 500 and "a.siesta/store.sqlite is damaged" in words and "`siesta check`" in words
    assert [record.exc_info for record in caplog.records] == [None], "no traceback"
    assert ask("GET", "/v1/classes").status_code == 200
    assert said(ask("GET", "/readyz")) == (503, words)
