"""Device, sleeper, both sleeps and the connection are killed at random moments; it cuts across all modules of both."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

from siesta import Siesta
from siesta.errors import SiestaError
from siesta.learner.integrity import check
from siesta.service.client import Client
from siesta.sleep.job import SleepJob
from tests.service.server_process import COLOURS, ServerProcess, SleeperProcess, make_image
from tests.service.wire import Wire

KILLS = 30
_LONGEST = 300.0  # seconds


class Night:
    """A device with a service, a sleeper, the connection between them, and what the device has acknowledged."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.path = folder / "device.siesta"
        with Siesta.create(self.path, memory="2MB", image_size=32):
            pass
        self.kills: Counter[str] = Counter()
        self.acknowledged: dict[int, str] = {}
        self.number = 0
        self.sleeper = SleeperProcess(folder / "packs", "--nice", "0")
        self.wire = Wire(self._port())
        self.device = self._start_device()

    def _port(self) -> int:
        return urlsplit(self.sleeper.url).port or 0

    def _start_device(self) -> ServerProcess:
        return ServerProcess(self.path, "--sleeper", f"http://127.0.0.1:{self.wire.port}")

    def restart(self) -> None:
        """Start what was killed."""
        self.wire.down = False
        if self.sleeper.process.poll() is not None:
            self.sleeper = SleeperProcess(self.sleeper.path, "--nice", "0")
            self.wire.target = self._port()
        if self.device.process.poll() is not None:
            self.device = self._start_device()

    def use(self) -> None:
        """Teach, forget and correct a little, as long as the device lives, and let it sleep."""
        with self.device.client() as client, contextlib.suppress(SiestaError, httpx.HTTPError):
            for _ in range(4):
                label = str(self.rng.choice(list(COLOURS)))
                self.number += 1
                (sample,) = client.learn(make_image(label, self.number), label)
                self.acknowledged[sample] = label
            if len(self.acknowledged) > 12:
                self._edit(client)
            if not SleepJob(self.path).status().running:
                client.sleep(updates=int(self.rng.choice([8, 64, 100_000])))

    def _edit(self, client: Client) -> None:
        sample = int(self.rng.choice(list(self.acknowledged)))
        label = self.acknowledged.pop(sample)  # whether an edit that is not acknowledged was made is not known
        if self.rng.random() < 0.5:
            client.forget_sample(sample)
            return
        other = next(name for name in COLOURS if name != label)
        self.acknowledged[client.correct(sample, other)] = other

    def wait(self) -> None:
        """Wait for a random moment of a sleep."""
        if self.rng.random() < 0.6:
            end = time.monotonic() + 60
            job = SleepJob(self.path)
            while (status := job.status()).running and status.progress is None and time.monotonic() < end:
                time.sleep(0.05)
        time.sleep(float(self.rng.uniform(0, 4)))

    def kill(self) -> None:
        """Kill something that lives."""
        victims: dict[str, Callable[[], object]] = {
            "device": lambda: self.device.stop(signal.SIGKILL),
            "sleeper": lambda: self.sleeper.stop(signal.SIGKILL),
            "connection": self.wire.cut,
            "network": self._cut_for_long,
        }
        pid = SleepJob(self.path).status().pid
        if SleepJob(self.path).status().running and pid is not None:
            victims["device's sleep"] = lambda: os.kill(pid, signal.SIGKILL)
        for pack in self.sleeper.packs():
            victims["sleeper's sleep"] = SleepJob(pack / "pack").kill
        name = str(self.rng.choice(list(victims)))
        self.kills[name] += 1
        with contextlib.suppress(ProcessLookupError):
            victims[name]()

    def _cut_for_long(self) -> None:
        self.wire.down = True
        self.wire.cut()
        time.sleep(2.0)

    def assert_sound(self, *, full: bool) -> None:
        """Nothing that was acknowledged is lost, and the learner is whole; statistics are those of its samples."""
        assert [found for found in check(self.path, full=full) if found.kind != "cache"] == []
        with Siesta.open(self.path, read_only=True) as learner:
            assert {sample: learner.label_of(sample) for sample in self.acknowledged} == self.acknowledged

    def finish(self) -> int:
        """Let the device sleep once more without kills, and return the number of the generation in use."""
        self.restart()
        job = SleepJob(self.path)
        with contextlib.suppress(SiestaError):
            job.wake()
        assert not job.wait(_LONGEST).running
        with self.device.client() as client:
            client.sleep(updates=8)
            status = job.wait(_LONGEST)
            assert status.state == "done", status.message
            return client.info().generation

    def stop(self) -> None:
        """End all processes."""
        SleepJob(self.path).kill()
        self.device.stop()
        self.sleeper.stop()
        self.wire.close()


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_whatever_is_killed_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    night = Night(tmp_path, seed=26)
    try:
        for kill in range(KILLS):
            night.use()
            night.wait()
            night.kill()
            night.assert_sound(full=kill % 3 == 0)
            night.restart()
        assert night.finish() >= 1
        night.assert_sound(full=True)
        assert len(night.kills) >= 5, night.kills
        assert night.sleeper.packs() == []
    finally:
        night.stop()
