"""The packs that a sleeper has received: a few at a time, slept on one after the other, and deleted.

Each is in a folder of its own with a random name. A pack that no device has asked for in a while is deleted, so that a
device that was switched off, or has lost the connection, leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import shutil
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from siesta.errors import BadInput, Damaged, DiskRefused, SiestaError
from siesta.files import disk_errors
from siesta.learner.pack import open_pack
from siesta.service.problems import Problem
from siesta.sleep.job import SleepJob, start_sleep
from siesta.sleep.options import SleepOptions
from siesta.sleep.status import SleepFailure, SleepStatus
from siesta.store.pack_file import PackFile

__all__ = ["LEASE_SECONDS", "PackQueue", "ReceivedPack"]

LEASE_SECONDS = 120.0
"""Seconds after which a pack is deleted that no device has asked for."""

_TICK_SECONDS = 0.25
_ROOM = 3  # times the size of a pack that the disk must have free: the pack, the unpacked learner, and its new weights
_KILL_SECONDS = 10.0
_log = logging.getLogger(__name__)


@dataclass
class ReceivedPack:
    """A pack that a sleeper has.

    Attributes:
        id: Its random name.
        file: Where it is.
        asked: When its device asked for it last.
        options: How to sleep; None until that was said.
        started: Whether its sleep was started.
        failure: Why it could not be started.
    """

    id: str
    file: Path
    asked: float = field(default_factory=time.monotonic)
    options: SleepOptions | None = None
    started: bool = False
    failure: SleepStatus | None = None

    @property
    def job(self) -> SleepJob:
        """Its sleep."""
        return SleepJob(self.file)

    @property
    def waits(self) -> bool:
        """Whether its sleep is to be started."""
        return self.options is not None and not self.started

    def status(self) -> SleepStatus:
        """Return the status of its sleep."""
        if self.failure is not None:
            return self.failure
        if self.waits:
            return SleepStatus("waiting", "waiting for its turn at the sleeper")
        return self.job.status()


class PackQueue:
    """Packs in a folder, of which one sleeps at a time."""

    def __init__(self, folder: Path, most: int, threads: int, nice: int) -> None:
        """Use a folder, whose contents are deleted.

        Args:
            folder: Where packs are kept; it is made if it does not exist.
            most: Number of packs at a time.
            threads: Threads of a sleep.
            nice: Niceness of its process.
        """
        self._folder = folder
        self._most = most
        self._threads = threads
        self._nice = nice
        self._packs: dict[str, ReceivedPack] = {}
        self._arriving = 0
        with disk_errors(folder):
            folder.mkdir(mode=0o700, exist_ok=True)
            for leftover in folder.iterdir():  # of a sleeper that was killed
                _delete(leftover)

    def get(self, pack_id: str) -> ReceivedPack:
        """Return a pack, and keep it for another while."""
        if pack_id not in self._packs:
            raise Problem(404, "the sleeper has no such pack, or no longer: send it again")
        pack = self._packs[pack_id]
        pack.asked = time.monotonic()
        return pack

    async def receive(self, blocks: AsyncIterator[bytes], length: int) -> ReceivedPack:
        """Store a pack that arrives in blocks.

        Args:
            blocks: Its bytes.
            length: How many there will be.
        """
        if len(self._packs) + self._arriving >= self._most:
            raise Problem(429, f"the sleeper has {self._most} packs already: try again later", {"Retry-After": "60"})
        if shutil.disk_usage(self._folder).free < _ROOM * length:
            raise Problem(503, "the disk of the sleeper has too little room for this pack: free some, or try later")
        pack_id = secrets.token_hex(16)
        folder = self._folder / pack_id
        self._arriving += 1
        try:
            with disk_errors(folder):
                folder.mkdir(mode=0o700)
                await _write(folder / "pack", blocks)
            await asyncio.to_thread(_check_pack, folder / "pack")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            self._arriving -= 1
        self._packs[pack_id] = ReceivedPack(pack_id, folder / "pack")
        return self._packs[pack_id]

    def sleep(self, pack_id: str, options: SleepOptions) -> ReceivedPack:
        """Let a pack sleep as soon as it is its turn; a second call changes nothing."""
        pack = self.get(pack_id)
        if pack.options is None:
            options.budget()  # raises if it is wrong
            pack.options = options
        return pack

    def result(self, pack_id: str) -> Path:
        """Return the file of a pack that has slept."""
        pack = self.get(pack_id)
        if pack.status().state != "done" or PackFile.open(pack.file).kind != "slept":
            raise Problem(409, "this pack has not slept: its status says why")
        return pack.file

    async def remove(self, pack_id: str) -> None:
        """Delete a pack; its sleep is ended at once."""
        pack = self.get(pack_id)
        del self._packs[pack.id]
        await asyncio.to_thread(_delete, pack.file.parent)

    async def run(self) -> None:
        """Start one sleep after the other, and delete packs that no device asks for, until it is cancelled."""
        try:
            while True:
                with contextlib.suppress(OSError):
                    await self._step()
                await asyncio.sleep(_TICK_SECONDS)
        finally:
            for pack in self._packs.values():
                _delete(pack.file.parent)

    async def _step(self) -> None:
        for pack in list(self._packs.values()):
            if time.monotonic() - pack.asked > LEASE_SECONDS:
                _log.warning("a pack was deleted: no device has asked for it for %g s", LEASE_SECONDS)
                await self.remove(pack.id)
        if any(pack.started and pack.status().running for pack in self._packs.values()):
            return
        waiting = [pack for pack in self._packs.values() if pack.waits]
        if waiting:
            await self._start(waiting[0])

    async def _start(self, pack: ReceivedPack) -> None:
        options = pack.options or SleepOptions()
        try:
            await asyncio.to_thread(start_sleep, pack.file, options, threads=self._threads, nice=self._nice)
        except SiestaError as error:
            pack.failure = SleepStatus("failed", str(error), failure=SleepFailure.of(error))
        pack.started = True
        if pack.id not in self._packs:  # it was deleted meanwhile
            await asyncio.to_thread(_delete, pack.file.parent)


def _check_pack(file: Path) -> None:
    try:
        open_pack(file)
    except DiskRefused:
        raise
    except (BadInput, Damaged) as error:
        raise Problem(422, str(error).replace(str(file), "what was sent")) from error


async def _write(file: Path, blocks: AsyncIterator[bytes]) -> None:
    with file.open("xb") as target:
        async for block in blocks:
            target.write(block)


def _delete(folder: Path) -> None:
    """Delete the folder of a pack after ending its sleep."""
    if not folder.is_dir():
        folder.unlink(missing_ok=True)
        return
    job = SleepJob(folder / "pack")
    job.kill()
    job.wait(_KILL_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
