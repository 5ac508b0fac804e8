"""The status that a sleeping process writes, and the commands that it reads."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from siesta import Siesta, SleepReport
from siesta.contracts import Progress
from siesta.errors import Busy, Damaged, DiskRefused, SiestaError
from siesta.sleep.job import SleepJob
from siesta.sleep.reporter import reporting
from siesta.store.session import sleeper_lock
from tests.learner.colours import picture

PROGRESS = Progress(64, 0.5, 1.5, 0.1, 32.0, 2.0)
REPORT = SleepReport(1, 64, 2.0, 12, 0, 3, 0, 1.0, 0.5, 0.01, False, 0, None, None, {}, True, {})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "colours.siesta"


@pytest.fixture
def learner(path: Path) -> Siesta:
    with Siesta.create(path, image_size=32) as made:
        made.learn_many([picture("red", number) for number in range(6)], ["red", "green"] * 3)
    return Siesta.open(path)


def test_a_reporter_writes_its_status_and_obeys_commands(tmp_path: Path) -> None:
    job = SleepJob(tmp_path)
    with reporting(tmp_path) as reporter:
        assert (job.status().state, job.status().pid) == ("asleep", os.getpid())
        assert not reporter.on_progress(PROGRESS)
        job.pause()
        Timer(0.3, job.resume).start()
        assert not reporter.on_progress(PROGRESS), "it returns after the pause"
        progress = job.status().progress
        assert progress is not None and progress["updates"] == 64
        job.wake()
        assert reporter.on_progress(PROGRESS) and reporter.woken
        reporter.done(REPORT)
    assert (job.status().state, job.status().message) == ("done", REPORT.summary())
    assert job.status().report == REPORT.as_dict()


def test_a_second_reporter_is_refused_in_the_same_process_too(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with reporting(tmp_path):
        for same in (tmp_path, tmp_path / "x" / ".."):
            with pytest.raises(Busy, match=f"asleep already, in process {os.getpid()}"), reporting(same):
                pass
    with reporting(tmp_path):  # the lock is free again
        pass


def test_a_wait_ends_with_its_time_or_with_the_command_to_wake_up(tmp_path: Path) -> None:
    job, left = SleepJob(tmp_path), iter([0.01, 0.0])
    with reporting(tmp_path) as reporter:
        assert reporter.wait(lambda: next(left), "waiting for noon")
        assert (job.status().state, job.status().message) == ("waiting", "waiting for noon")
        job.wake()
        assert not reporter.wait(lambda: 5.0, "waiting for noon")
    assert (job.status().state, job.status().message) == ("done", "woken before it began")


@pytest.mark.parametrize(
    ("error", "message", "kind", "exit_code"),
    [
        (ValueError("oh"), "oh", "ValueError", 1),
        (Damaged("broken: repair it"), "broken: repair it", "Damaged", 4),
        (KeyboardInterrupt(), "interrupted before the first update", "KeyboardInterrupt", 130),
    ],
)
def test_a_failure_is_reported_with_its_kind_and_exit_code(
    tmp_path: Path, error: BaseException, message: str, kind: str, exit_code: int
) -> None:
    with pytest.raises(type(error)), reporting(tmp_path):
        raise error
    status = SleepJob(tmp_path).status()
    assert status.failure is not None
    assert (status.state, status.message) == ("failed", message)
    assert (status.failure.kind, status.failure.exit_code) == (kind, exit_code)
    assert isinstance(status.failure.error(message), Damaged if kind == "Damaged" else SiestaError)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("siesta.files.os.pwrite", full)
    with pytest.raises(DiskRefused, match=r"the disk of .*sleep is full"), reporting(tmp_path):
        pass


def test_a_sleep_in_this_process_is_seen_by_others(learner: Siesta, path: Path) -> None:
    job, states = SleepJob(path), []

    def look(_: Progress) -> None:
        states.append(job.status().state)
        with pytest.raises(Busy, match="asleep already"):
            learner.sleep(updates=4)
        job.wake()

    report = learner.sleep(updates=1000, batch_size=4, on_progress=look)
    assert report.interrupted and report.updates < 1000 and set(states) == {"asleep"}
    assert job.status().state == "done" and job.status().message == report.summary()


def test_a_sleep_waits_for_an_edit_by_another_process(learner: Siesta, path: Path) -> None:
    lock = sleeper_lock(path)
    with Siesta.open(path, to_sleep=True) as sleeper:
        Timer(0.3, lock.release).start()
        assert sleeper.sleep(updates=4, batch_size=4).updates == 4
