"""Full disks, removed folders and damaged databases, across routes, worker and store: reported, never acknowledged."""

from __future__ import annotations

import errno
import logging
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import pytest

from siesta import Siesta
from siesta.errors import DiskRefused
from siesta.store import tensor_files
from tests.service.conftest import Send
from tests.service.server_process import IMAGE_SIZE, make_image


def learn(send: Send, label: str) -> httpx.Response:
    return send("POST", "/v1/learn", files={"image": make_image("red")}, data={"label": label})


@pytest.fixture
def taught(send: Send) -> Send:
    """An application whose learner knows red and blue."""
    for label in ("red", "blue"):
        assert learn(send, label).status_code == 200
    return send


def problem(response: httpx.Response) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, response.json()["detail"]


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_acknowledged_after_the_folder_was_removed(taught: Send, learner_path: Path, replaced: bool) -> None:
    assert taught("GET", "/readyz").status_code == 200
    shutil.rmtree(learner_path)
    if replaced:
        other = learner_path.with_name("other.siesta")
        Siesta.create(other, memory="1MB", image_size=IMAGE_SIZE).close()
        other.rename(learner_path)
    for response in (learn(taught, "red"), taught("DELETE", "/v1/classes/1"), taught("GET", "/readyz")):
        status, detail = problem(response)
        assert status == 503 and detail.startswith("a.siesta was removed, moved or replaced")
    prediction = taught("POST", "/v1/predict", files={"image": make_image("red")})
    assert prediction.status_code == 200, "the learner in memory still predicts"


def test_nothing_is_acknowledged_if_the_folder_is_removed_during_the_request(
    taught: Send, learner_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Siesta.learn_many

    def learn_many(learner: Siesta, images: Any, labels: Any) -> list[int]:
        ids = original(learner, images, labels)
        shutil.rmtree(learner_path)
        return ids

    monkeypatch.setattr(Siesta, "learn_many", learn_many)
    assert learn(taught, "red").status_code == 503


def test_a_full_disk_is_answered_with_503(taught: Send, learner_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise DiskRefused(f"the disk of {learner_path} is full: free some space and try again")

    for name in ("learn_many", "forget", "forget_sample", "rename", "merge", "correct", "sleep_async"):
        monkeypatch.setattr(Siesta, name, fail)
    responses = [
        learn(taught, "red"),
        taught("DELETE", "/v1/classes/1"),
        taught("PATCH", "/v1/classes/1", json={"label": "pink"}),
        taught("POST", "/v1/classes/1/merge", json={"into": 2}),
        taught("DELETE", "/v1/samples/1"),
        taught("PATCH", "/v1/samples/1", json={"label": "pink"}),
        taught("POST", "/v1/sleep", json={"seconds": 1}),
    ]
    for response in responses:
        assert problem(response) == (503, "the disk of a.siesta is full: free some space and try again")
        assert response.headers["retry-after"] == "1"


def test_a_change_after_which_the_disk_fails_is_not_to_be_sent_again(
    taught: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(tensor_files, "sync_folder", refuse)
        response = taught("PATCH", "/v1/samples/1", json={"label": "blue"})
    status, detail = problem(response)
    assert status == 500 and "the change was applied (the sample has the new id 3)" in detail
    assert (response.json()["applied"], response.json()["sample"]) == (True, 3)
    assert "retry-after" not in response.headers
    (blue,) = taught("GET", "/v1/classes").json()["classes"]
    assert (blue["label"], blue["stored"], blue["thumbnails"]) == ("blue", 2, [3, 2])


def test_damage_is_reported_and_remembered(taught: Send, learner_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with sqlite3.connect(learner_path / "store.sqlite") as other:
        other.execute("DROP TABLE audit")
    other.close()
    with caplog.at_level(logging.ERROR):
        status, detail = problem(taught("GET", "/v1/info"))
    assert status == 500 and "a.siesta/store.sqlite is damaged" in detail and "`siesta check`" in detail
    assert [record.exc_info for record in caplog.records] == [None], "no traceback"
    assert taught("GET", "/v1/classes").status_code == 200
    assert problem(taught("GET", "/readyz")) == (503, detail)
