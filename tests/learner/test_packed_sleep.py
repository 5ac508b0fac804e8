"""A sleep on a pack."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from siesta import Siesta
from siesta.errors import BadInput, Busy, Damaged
from siesta.learner.integrity import check
from siesta.learner.pack import pack_learner
from siesta.learner.packed_sleep import read_slept, sleep_on_pack
from siesta.learner.take import take_sleep
from siesta.sleep.job import SleepJob, start_sleep
from siesta.sleep.options import SleepOptions
from siesta.sleep.reporter import reporting
from siesta.store.pack_file import PackFile, write_pack_file
from tests.learner.meanwhile import OPTIONS, outcome, packed_and_slept


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    packed_and_slept(folder)
    return folder


@pytest.fixture
def file(prepared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(prepared / "packed", tmp_path / "file"))


def test_the_result_takes_the_place_of_the_memory(prepared: Path) -> None:
    slept = read_slept(prepared / "slept")
    assert slept.report.updates == 16
    assert slept.sums["times"].sum() == 16
    assert set(slept.sums) >= {"rehearsed", "counted", "statistics.gram"}
    with pytest.raises(BadInput, match="has slept already: bring it back with `siesta take`"):
        sleep_on_pack(prepared / "slept", OPTIONS)


def test_a_sleep_that_is_ended_early_keeps_what_it_has_trained(file: Path) -> None:
    report = sleep_on_pack(file, SleepOptions(updates=1000, batch_size=8), on_progress=lambda now: now.updates >= 8)
    assert (report.interrupted, report.updates) == (True, 8)
    assert read_slept(file).report.updates == 8


def test_a_sleep_that_fails_leaves_the_pack(file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(ZeroDivisionError):
        sleep_on_pack(file, OPTIONS, on_progress=lambda _: bool(1 // 0))
    assert file.read_bytes() == before
    assert SleepJob(file).status().state == "failed"
    assert not (file.parent / "file.sleep" / "learner").exists()


@pytest.mark.slow
def test_a_pack_that_is_replaced_during_its_sleep_is_not_overwritten(
    file: Path, prepared: Path, tmp_path: Path
) -> None:
    pack_learner(shutil.copytree(prepared / "device.siesta", tmp_path / "a.siesta"), tmp_path / "other")

    def replace(_: object) -> None:
        shutil.copy(tmp_path / "other", file)

    with pytest.raises(BadInput, match="was replaced by another pack during its sleep"):
        sleep_on_pack(file, OPTIONS, on_progress=replace)
    assert file.read_bytes() == (tmp_path / "other").read_bytes()


def test_two_sleeps_on_one_pack_are_refused(file: Path) -> None:
    with reporting(file), pytest.raises(Busy, match="is asleep already"):
        sleep_on_pack(file, OPTIONS)


def test_a_result_without_a_report_is_refused(prepared: Path, tmp_path: Path) -> None:
    found = PackFile.open(prepared / "slept")
    write_pack_file(tmp_path / "wrong", "slept", {"id": "1"}, {name: found.read(name) for name in found.parts})
    with pytest.raises(Damaged, match="is damaged: sleep on the pack again"):
        read_slept(tmp_path / "wrong")


def test_a_background_sleep_on_a_pack_is_followed_killed_and_started_again(tmp_path: Path) -> None:
    device, file = tmp_path / "device.siesta", tmp_path / "file"
    with Siesta.create(device, features=8) as learner:  # which every process can open
        learner.learn_many(np.random.default_rng(0).standard_normal((9, 8), np.float32), ["a", "b", "c"] * 3)
    pack_learner(device, file)
    packed = file.read_bytes()
    job = start_sleep(file, SleepOptions(updates=100_000, batch_size=8))
    status = job.status()
    assert (status.state, status.running) == ("asleep", True)
    assert status.pid is not None
    os.kill(status.pid, signal.SIGKILL)
    end = time.monotonic() + 60
    while job.status().running and time.monotonic() < end:
        time.sleep(0.05)
    assert job.status().state == "killed"
    assert file.read_bytes() == packed
    sleep_on_pack(file, OPTIONS)
    assert job.status().state == "done"
    assert outcome(take_sleep(device, file)) == (1, True)
    assert check(device, full=True) == []
