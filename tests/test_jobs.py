"""Sleep in a process of its own: followed, paused, ended, killed."""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from siesta import Siesta
from siesta.contracts import Progress
from siesta.errors import BadInput, Busy, DiskRefused
from siesta.jobs import SleepJob, SleepStatus, _refused, reported
from siesta.store.store import sleeper_lock
from tests.test_learner import picture

COLOURS = ("red", "green", "blue")


@pytest.fixture
def learner(tmp_path: Path) -> Iterator[Siesta]:
    with Siesta.create(tmp_path / "colours.siesta", image_size=32) as made:
        for number in range(12):
            made.learn_one(picture(COLOURS[number % 3], number), COLOURS[number % 3])
        yield made


def path_of(learner: Siesta) -> Path:
    path = learner.store.path
    assert path is not None
    return path


def wait_for(job: SleepJob, wanted: Callable[[SleepStatus], bool]) -> SleepStatus:
    end = time.monotonic() + 60
    while not wanted(status := job.status()):
        assert time.monotonic() < end, status
        time.sleep(0.02)
    return status


def test_teaching_and_asking_go_on_while_it_sleeps_and_its_weights_are_taken_over(learner: Siesta) -> None:
    assert SleepJob(path_of(learner)).status().state == "never"
    job = learner.sleep_async(updates=100_000, batch_size=16, rate=0.001)
    first = wait_for(job, lambda status: status.progress is not None)
    assert (first.state, first.running) == ("asleep", True)
    before = learner.predict_one(picture("red", 50))
    assert learner.learn_one(picture("grey", 1), "grey") == 13
    with pytest.raises(Busy, match="asleep already"):
        learner.sleep_async(updates=10)
    with pytest.raises(Busy, match="asleep already"):
        learner.sleep(updates=10)
    assert learner.store.generation() == 0
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
    assert status.report["classes"] == 3  # grey came later
    assert learner.predict_one(picture("red", 50)) != before
    assert learner.store.generation() == 1
    assert "grey" in dict(learner.predict_one(picture("grey", 2)).top)
    with pytest.raises(BadInput, match="not asleep: there is nothing to wake"):
        job.wake()
    wait_for(job, lambda _: not Path(f"/proc/{status.pid}").exists())  # it leaves no zombie in a process that lives on


def test_killed_it_leaves_nothing_and_the_next_one_begins_anew(learner: Siesta) -> None:
    before = learner.predict_one(picture("red", 50))
    job = learner.sleep_async(updates=1_000_000, batch_size=16)
    status = wait_for(job, lambda status: status.progress is not None)
    assert status.pid is not None
    os.kill(status.pid, signal.SIGKILL)
    status = wait_for(job, lambda status: not status.running)
    assert (status.state, status.words) == ("killed", "its process was killed, nothing was changed: start it again")
    assert learner.predict_one(picture("red", 50)) == before
    assert learner.sleep_async(updates=32, batch_size=16).wait(60).state == "done"
    assert learner.store.generation() == 1


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"updates": 4, "policy": "best"}, "no policy 'best'"),
    ({"updates": 4, "batch_size": 0}, "a batch has 1 to"),
    ({}, "exactly one of updates"),
    ({"updates": 4, "on_progress": print}, "takes text and numbers"),
    ({"updates": 4, "threads": 0}, "at least one thread"),
]


def test_what_cannot_begin_says_why(learner: Siesta) -> None:
    for options, words in WRONG:
        with pytest.raises(BadInput, match=words):
            learner.sleep_async(**options)
    with Siesta.create(":memory:", image_size=32) as in_memory, pytest.raises(BadInput, match="in its own process"):
        in_memory.sleep_async(updates=4)


def test_a_sleep_in_this_process_is_seen_too(learner: Siesta) -> None:
    job, states = SleepJob(path_of(learner)), []

    def look(_: Progress) -> None:
        states.append(job.status().state)
        job.wake()

    report = learner.sleep(updates=1000, batch_size=4, on_progress=look)
    assert report.interrupted and report.updates < 1000 and set(states) == {"asleep"}
    assert job.status().state == "done" and job.status().words == report.words()


def test_a_sleep_waits_for_who_changes_something_just_now(learner: Siesta) -> None:
    lock = sleeper_lock(path_of(learner))
    with Siesta.open(path_of(learner), to_sleep=True) as sleeper:
        Timer(0.3, lock.release).start()
        assert sleeper.sleep(updates=4, batch_size=4).updates == 4


def test_a_reporter_says_how_it_stands_and_hears_wishes(tmp_path: Path) -> None:
    job = SleepJob(tmp_path)
    with reported(tmp_path) as reporter:
        assert job.status().state == "asleep"
        with reported(tmp_path) as same, same.one_sleep():
            assert same is reporter, "what waits for a sleep, and the sleep"
            with pytest.raises(Busy, match=f"process {os.getpid()}"), same.one_sleep():
                pass
        (tmp_path / "x").mkdir()
        with pytest.raises(Busy, match=f"process {os.getpid()}"), reported(tmp_path / "x" / ".."):
            pass
        assert not reporter.on_progress(Progress(64, 0.5, 1.5, 0.1, 32.0, 2.0))
        job.wake()
        assert reporter.on_progress(Progress(128, 1.0, 1.0, 0.1, 32.0, 0.0))
        assert not reporter.wait(lambda: 5.0, "waiting")
        reporter.say("done", "well rested")
    assert job.status().words == "well rested"
    with pytest.raises(ValueError, match="oh"), reported(tmp_path):
        raise ValueError("oh")
    assert (job.status().state, job.status().words) == ("failed", "oh")
    (tmp_path / "sleep" / "status.json").write_text(json.dumps({"state": "asleep", "words": "", "pid": 1}))
    assert job.status().state == "killed"
    (tmp_path / "sleep" / "status.json").write_text("{")
    assert job.status().state == "killed"


def test_a_full_disk_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("siesta.jobs.os.pwrite", full)
    with pytest.raises(DiskRefused, match=r"sleep cannot be written \(No space left"), reported(tmp_path):
        pass


def test_what_a_process_said_before_it_ended_is_passed_on_but_no_traceback(tmp_path: Path) -> None:
    said = "Traceback (most recent call last):\n  File '/home/x.py'\nOSError: oh\n"
    for printed, code, kind, words in (
        (said, 1, BadInput, f"it ended with code 1: run `siesta sleep {tmp_path}` to see why"),
        ("error: the disk is full", 7, DiskRefused, "the disk is full"),
        ("error: it is asleep", 5, Busy, "it is asleep"),
    ):
        error = _refused(tmp_path, printed, code)
        assert (type(error), str(error)) == (kind, words)
