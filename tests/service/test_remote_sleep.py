"""A device, and a sleeper that trains for it, as processes that talk over a network."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from siesta import Siesta
from siesta.errors import BadInput, SiestaError
from siesta.learner.integrity import check
from siesta.service import remote_sleep
from siesta.service.client import Client
from siesta.service.remote_sleep import sleep_remotely
from siesta.service.sleeper_client import SleeperClient
from siesta.sleep.job import SleepJob
from siesta.sleep.options import SleepOptions
from siesta.sleep.report import SleepReport
from siesta.sleep.reporter import reporting
from tests.learner.colours import labelled_pictures
from tests.learner.meanwhile import OPTIONS, copy_of, rows, seen
from tests.service.conftest import StartServer
from tests.service.server_process import SleeperProcess


@pytest.fixture(scope="module")
def sleeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SleeperProcess]:
    process = SleeperProcess(tmp_path_factory.mktemp("sleeper") / "packs", "--nice", "0")
    yield process
    assert process.stop() == 0
    assert process.packs() == []


@pytest.fixture
def device(tmp_path: Path) -> Path:
    path = tmp_path / "device.siesta"
    with Siesta.create(path, image_size=32) as learner:
        learner.learn_many(*labelled_pictures(3))
    return path


def remotely(path: Path, url: str, options: SleepOptions, on_progress: Callable[..., Any] = bool) -> SleepReport:
    with SleeperClient(url) as client, reporting(path) as reporter:
        return sleep_remotely(path, options, client, reporter, lambda now: bool(on_progress(now)))


def test_a_service_lets_a_sleeper_train_while_it_goes_on(
    start_server: StartServer, sleeper: SleeperProcess, tmp_path: Path
) -> None:
    path = tmp_path / "vectors.siesta"
    Siesta.create(path, features=8).close()
    server = start_server("--sleeper", sleeper.url, path=path)
    vectors = np.random.default_rng(0).standard_normal((9, 8), np.float32)
    with server.client() as client:
        client.learn_vectors(vectors[:8], ["red", "red", "red", "red", "blue", "blue", "blue", "blue"])
        assert client.sleep(updates=10**7).running
        progress = wait_for(client, lambda status: status.progress is not None)
        assert progress.state == "asleep"
        (sample,) = client.learn_vectors(vectors[8:], "green")
        client.forget_sample(1)
        client.correct(5, "green")
        client.rename(1, "crimson")
        client.wake()
        done = wait_for(client, lambda status: not status.running)
        assert (done.state, done.report and done.report.interrupted) == ("done", True), done.words
        assert [known.number for known in client.generations() if known.in_use] == [1]
        assert {known.label: known.taught for known in client.classes()} == {"crimson": 3, "blue": 3, "green": 2}
        assert sample == 9
    assert check(server.path, full=True) == []
    assert sleeper.packs() == []


def wait_for(client: Client, condition: Callable[[Any], bool]) -> Any:
    end = time.monotonic() + 240
    while not condition(status := client.sleep_status()):
        assert time.monotonic() < end, status
        time.sleep(0.1)
    return status


@pytest.mark.slow
def test_it_equals_a_sleep_on_the_device_and_leaves_nothing(
    device: Path, sleeper: SleeperProcess, tmp_path: Path
) -> None:
    local = copy_of(device, tmp_path / "local.siesta")
    with Siesta.open(local) as learner:
        learner.sleep(OPTIONS)
    report = remotely(device, sleeper.url, OPTIONS)
    assert (report.generation, report.used, report.updates) == (1, True, 16)
    assert rows(device) == rows(local)
    assert seen(device) == seen(local)
    assert sorted(file.name for file in (device / "sleep").iterdir()) == ["alive", "status.json"]
    assert sleeper.packs() == []
    assert SleepJob(device).status().report == report.as_dict()


@pytest.mark.slow
def test_what_is_trained_until_an_interrupt_is_taken(device: Path, sleeper: SleeperProcess) -> None:
    report = remotely(device, sleeper.url, SleepOptions(updates=10**6, batch_size=8), lambda now: now.updates > 0)
    assert (report.interrupted, report.used) == (True, True)


@pytest.mark.slow
def test_a_pause_is_passed_on(device: Path, sleeper: SleeperProcess) -> None:
    job = SleepJob(device)
    told: list[str] = []

    def steer(_: object) -> bool:
        state = job.status().state
        if not told:
            job.pause()
        elif told[-1] != state == "paused":
            job.resume()
        told.append(state)
        return told.count("asleep") > 1 and "paused" in told and state == "asleep"

    assert remotely(device, sleeper.url, SleepOptions(updates=10**6, batch_size=8), steer).interrupted
    assert "paused" in told


@pytest.mark.slow
def test_a_sleeper_that_dies_changes_nothing(device: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_sleep, "PATIENCE_SECONDS", 2.0)
    sleeper = SleeperProcess(tmp_path / "packs", "--nice", "0")
    before = rows(device)
    with pytest.raises(
        BadInput, match=r"the connection to the sleeper was lost .*: the learner is as it was, so start"
    ):
        remotely(device, sleeper.url, SleepOptions(updates=10**6), lambda _: sleeper.stop(signal.SIGKILL) and False)
    status = SleepJob(device).status()
    assert status.state == "failed"
    assert "the connection to the sleeper was lost" in status.message
    assert rows(device) == before
    (left,) = sleeper.packs()
    job = SleepJob(left / "pack")
    assert job.status().running, "the sleep outlives its service"
    again = SleeperProcess(sleeper.path, "--nice", "0")
    assert again.packs() == []
    assert not job.status().running
    assert remotely(device, again.url, OPTIONS).used
    assert again.stop() == 0


@pytest.mark.slow
def test_a_sleep_that_dies_there_is_named(device: Path, sleeper: SleeperProcess) -> None:
    def kill(_: object) -> None:
        SleepJob(sleeper.packs()[0] / "pack").kill()

    with pytest.raises(BadInput, match=r"the sleeper failed \(its process was killed"):
        remotely(device, sleeper.url, SleepOptions(updates=10**6, batch_size=8), kill)
    assert sleeper.packs() == []


def test_a_sleeper_that_cannot_be_used_is_named_at_once(device: Path) -> None:
    before = rows(device)
    with pytest.raises(SiestaError, match="does not answer"):
        remotely(device, "http://127.0.0.1:9", OPTIONS)
    with pytest.raises(BadInput, match="it cannot use --judge"):
        remotely(device, "http://127.0.0.1:9", SleepOptions(updates=4, judge=device))
    assert rows(device) == before
    assert not (device / "sleep" / "pack").exists()
