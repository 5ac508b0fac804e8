"""A background sleep: started, followed, paused, ended and killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from siesta import Siesta, SleepOptions
from siesta.errors import BadInput, Busy, DiskRefused
from siesta.sleep.job import COMMAND_FILE, SleepJob, start_sleep
from siesta.sleep.reporter import reporting
from siesta.sleep.status import SleepStatus
from tests.learner.colours import picture

COLOURS = ("red", "green", "blue")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "colours.siesta"


@pytest.fixture
def learner(path: Path) -> Iterator[Siesta]:
    with Siesta.create(path, image_size=32) as made:
        for number in range(12):
            made.learn_one(picture(COLOURS[number % 3], number), COLOURS[number % 3])
        yield made


def wait_for(job: SleepJob, condition: Callable[[SleepStatus], bool]) -> SleepStatus:
    end = time.monotonic() + 60
    while not condition(status := job.status()):
        assert time.monotonic() < end, status
        time.sleep(0.02)
    return status


def test_learning_and_predicting_go_on_during_a_sleep_and_its_weights_are_used(learner: Siesta, path: Path) -> None:
    assert SleepJob(path).status().state == "never"
    job = learner.sleep_async(updates=100_000, batch_size=16, lr=0.001)
    first = wait_for(job, lambda status: status.progress is not None)
    assert (first.state, first.running) == ("asleep", True)
    before = learner.predict_one(picture("red", 50))
    assert learner.learn_one(picture("grey", 1), "grey") == 13
    with pytest.raises(Busy, match=f"asleep already, in process {first.pid}"):
        learner.sleep_async(updates=10)
    with pytest.raises(Busy, match=f"asleep already, in process {first.pid}"):
        learner.sleep(updates=10)
    assert learner.generation == 0
    job.pause()
    paused = wait_for(job, lambda status: status.state == "paused")
    time.sleep(0.5)
    assert job.status().progress == paused.progress
    job.resume()
    wait_for(job, lambda status: status.progress != paused.progress)
    job.wake()
    status = job.wait(60)
    assert status.state == "done"
    assert status.report is not None
    assert status.report["interrupted"] is True
    assert status.report["classes"] == 3, "grey came later"
    assert learner.predict_one(picture("red", 50)) != before
    assert learner.generation == 1
    assert "grey" in dict(learner.predict_one(picture("grey", 2)).top)
    with pytest.raises(BadInput, match="not asleep: there is nothing to wake"):
        job.wake()
    wait_for(job, lambda _: not Path(f"/proc/{status.pid}").exists())  # no zombie is left behind


def test_a_killed_sleep_changes_nothing_and_the_next_one_starts_anew(learner: Siesta) -> None:
    before = learner.predict_one(picture("red", 50))
    job = learner.sleep_async(updates=1_000_000, batch_size=16)
    status = wait_for(job, lambda status: status.progress is not None)
    assert status.pid is not None
    os.kill(status.pid, signal.SIGKILL)
    status = wait_for(job, lambda status: not status.running)
    assert (status.state, status.message) == ("killed", "its process was killed, nothing was changed: start it again")
    assert learner.predict_one(picture("red", 50)) == before
    options = SleepOptions(updates=32, batch_size=16, momentum=0.5, optimizer="adamw", lr=0.001)
    status = learner.sleep_async(options).wait(60)
    assert status.state == "done" and status.report is not None
    used = {"batch_size": 16, "momentum": 0.5, "optimizer": "adamw", "rate": 0.001, "policy": "balanced_uniform"}
    assert {**status.report["settings"], **used} == status.report["settings"], "every option reaches the process"
    learner.predict_one(picture("red", 50))
    assert learner.generation == 1


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"updates": 4, "policy": "best"}, "no policy 'best'"),
    ({"updates": 4, "minutes": 1}, "at most one budget: give one of updates"),
    ({"updates": 4, "policy": object()}, "takes text and numbers, not policy="),
    ({"updates": 4, "threads": 0}, "threads must be at least 1, not 0"),
    ({"updates": 4, "nice": 20}, r"nice must be in 0\.\.19, not 20"),
]


def test_a_sleep_with_wrong_options_does_not_start(learner: Siesta) -> None:
    for options, words in WRONG:
        with pytest.raises(BadInput, match=words):
            learner.sleep_async(**options)
    with Siesta.create(":memory:", image_size=32) as in_memory, pytest.raises(BadInput, match="in memory cannot"):
        in_memory.sleep_async(updates=4)


def test_a_sleep_that_fails_in_its_process_raises_the_same_error_here(path: Path) -> None:
    with Siesta.create(path, image_size=32) as empty, pytest.raises(BadInput, match="no samples are stored"):
        empty.sleep_async(updates=4)
    status = SleepJob(path).status()
    assert (status.state, status.message) == ("failed", "no samples are stored: learn some first")
    assert status.failure is not None and (status.failure.kind, status.failure.exit_code) == ("BadInput", 3)


def test_a_process_that_cannot_write_its_status_is_explained_by_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for code, kind, words in (
        (1, BadInput, f"exit code 1 before it began: run `siesta sleep {tmp_path}` to see why"),
        (7, DiskRefused, "sleep cannot be written: check its disk"),
        (5, Busy, "is asleep already"),
    ):
        script = tmp_path / "python"
        script.write_text(f"#!/bin/sh\nexit {code}\n")
        script.chmod(0o755)
        monkeypatch.setattr("sys.executable", str(script))
        with pytest.raises(kind, match=words):
            start_sleep(tmp_path, SleepOptions(updates=1))


def test_commands_sent_at_the_same_moment_are_all_written(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def pause_and_resume() -> None:
        try:
            for _ in range(50):
                SleepJob(tmp_path).pause()
                SleepJob(tmp_path).resume()
        except BaseException as error:
            failures.append(error)

    with reporting(tmp_path):
        threads = [Thread(target=pause_and_resume) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert (tmp_path / "sleep" / COMMAND_FILE).read_text() == "resume"
        assert not list((tmp_path / "sleep").glob(".*"))


def test_a_status_that_is_broken_or_of_a_dead_process_means_killed(tmp_path: Path) -> None:
    (tmp_path / "sleep").mkdir()
    file = tmp_path / "sleep" / "status.json"
    for text in ('{"state": "asleep", "words": "", "pid": 1}', "{", "[]", '{"state": "done"}'):
        file.write_text(text)
        assert SleepJob(tmp_path).status().state == "killed", text
    file.write_text('{"state": "done", "words": "as version 0.1 wrote it", "pid": 1, "started": "2026-01-01"}')
    assert SleepJob(tmp_path).status().message == "as version 0.1 wrote it"
