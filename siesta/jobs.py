"""A sleep that other processes can follow, pause and end: one that runs says how it stands, in the learner's folder.

    birds.siesta/sleep/status.json    how it stands, written anew several times a second
                       wish           what somebody wants of it: pause, resume or wake
                       alive          locked for as long as its process lives, whatever the status says

Nothing here knows a learner: `begin_sleep` runs our own command line in a process of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import Any, Literal

from siesta.contracts import Progress
from siesta.errors import BadInput, Busy, DiskRefused, SiestaError

__all__ = ["Reporter", "SleepJob", "SleepStatus", "begin_sleep", "reported"]

State = Literal["never", "waiting", "asleep", "paused", "done", "failed", "killed"]
Wish = Literal["pause", "resume", "wake"]

_FOLDER = "sleep"
_RUNNING: tuple[State, ...] = ("waiting", "asleep", "paused")
_ASLEEP = "{path} is asleep already, in process {pid}: wait for it, or wake it with `siesta wake {path}`"
_A_WHILE = 0.2  # seconds between two looks
_STARTING = 20.0  # seconds that are waited for the first batch, to say it if there will be none


@dataclass(frozen=True)
class SleepStatus:
    """How the last sleep of a learner stands.

    Attributes:
        state: "never" there was one, "waiting" for its time, "asleep", "paused", "done", "failed", or "killed": its
            process died, and nothing of it was kept.
        words: The same for people.
        pid: Its process.
        started: When it began.
        progress: Of the last batch; None before the first.
        report: What it left behind, once it is done.
    """

    state: State
    words: str
    pid: int | None = None
    started: str | None = None
    progress: Mapping[str, float] | None = None
    report: Mapping[str, Any] | None = None

    @property
    def running(self) -> bool:
        """Whether it may still change."""
        return self.state in _RUNNING


class SleepJob:
    """The sleep of a learner in whatever process, seen from here."""

    def __init__(self, path: Path) -> None:
        """Takes the learner's folder."""
        self._path, self._folder = path, path / _FOLDER

    def status(self) -> SleepStatus:
        """How it stands."""
        alive = _is_locked(self._folder / "alive")  # before the status: who dies in between has written its last one
        try:
            status = SleepStatus(**json.loads((self._folder / "status.json").read_text("utf-8")))
        except FileNotFoundError:
            return SleepStatus("never", "it never slept in a process of its own")
        except (OSError, ValueError, TypeError):
            return SleepStatus("killed", "its status cannot be read: start it again")
        if status.running and not alive:
            words = "its process was killed, nothing was changed: start it again"
            return replace(status, state="killed", words=words)
        return status

    def pause(self) -> None:
        """Lets it rest until `resume`; a budget of time runs on."""
        self._wish("pause")

    def resume(self) -> None:
        """Lets it go on."""
        self._wish("resume")

    def wake(self) -> None:
        """Ends it early; what it consolidated until now is kept."""
        self._wish("wake")

    def _wish(self, wish: Wish) -> None:
        if not self.status().running:
            raise BadInput(f"{self._path} is not asleep: there is nothing to {wish}")
        with _disk_errors(self._folder):
            _write(self._folder / "wish", wish)

    def wait(self, seconds: float | None = None) -> SleepStatus:
        """Waits until it has ended, or so many seconds; returns how it stands."""
        end = None if seconds is None else time.monotonic() + seconds
        while (status := self.status()).running and (end is None or time.monotonic() < end):
            time.sleep(_A_WHILE)
        return status


class Reporter:
    """The sleep's own side: says how it stands, and hears what is wished."""

    def __init__(self, folder: Path) -> None:
        """Takes the folder in the learner's; use `reported`."""
        self._folder = folder
        self._status = SleepStatus("asleep", "falling asleep", os.getpid(), datetime.now(UTC).isoformat("T", "seconds"))
        self._written, self._sleeps = 0.0, False
        (folder / "wish").unlink(missing_ok=True)
        self.say("asleep", "falling asleep")

    def say(self, state: State, words: str, **more: Any) -> None:
        """Writes a status."""
        self._status = replace(self._status, state=state, words=words, **more)
        self._written = time.monotonic()
        with contextlib.suppress(OSError):  # a full disk must not end a sleep
            _write(self._folder / "status.json", json.dumps(asdict(self._status)))

    def wished(self) -> str | None:
        """What somebody wants, if anything."""
        try:
            return (self._folder / "wish").read_text("ascii")
        except OSError:
            return None

    def on_progress(self, progress: Progress) -> bool:
        """To be called after each batch; True when it shall wake up."""
        if time.monotonic() - self._written > _A_WHILE:
            self.say("asleep", "asleep", progress=asdict(progress))
        if self.wished() == "pause":
            self.say("paused", "paused", progress=asdict(progress))
            while self.wished() == "pause":
                time.sleep(_A_WHILE)
            self.say("asleep", "asleep", progress=asdict(progress))
        return self.wished() == "wake"

    @contextmanager
    def one_sleep(self) -> Iterator[None]:
        """Inside, it sleeps; a second sleep in this process is refused."""
        if self._sleeps:
            raise Busy(_ASLEEP.format(path=self._folder.parent, pid=os.getpid()))
        self._sleeps = True
        try:
            yield
        finally:
            self._sleeps = False

    def wait(self, until: Callable[[], float], words: str) -> bool:
        """Waits while `until` says how many seconds are left; False when it was woken meanwhile."""
        while (left := until()) > 0:
            self.say("waiting", words, progress=None)
            if self.wished() == "wake":
                return False
            time.sleep(min(left, 1.0))
        return True


_reporters: dict[Path, Reporter] = {}


@contextmanager
def reported(path: Path) -> Iterator[Reporter]:
    """Makes a sleep visible to other processes; a second one at the same time is refused.

    Inside itself it is the same one: what waits for a sleep, and the sleep.
    """
    path = path.absolute()
    if path in _reporters:
        yield _reporters[path]
        return
    folder = path / _FOLDER
    with _disk_errors(folder):
        folder.mkdir(exist_ok=True)
        alive = os.open(folder / "alive", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        with _disk_errors(folder):
            _lock(alive, path)
            reporter = _reporters[path] = Reporter(folder)
        try:
            yield reporter
        except BaseException as error:
            reporter.say("failed", str(error) or "interrupted before there was anything to keep")
            raise
        finally:
            del _reporters[path]
    finally:
        os.close(alive)


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        words = f"{folder} cannot be written ({error.strerror}): check its disk and its permissions"
        raise DiskRefused(words) from error


def _lock(alive: int, path: Path) -> None:
    """Others hold it only as long as a look takes, unless they sleep."""
    for _ in range(10):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(alive, 0)
            os.pwrite(alive, str(os.getpid()).encode("ascii"), 0)
            return
        time.sleep(0.05)
    owner = os.pread(alive, 20, 0).decode("ascii", "replace")
    raise Busy(_ASLEEP.format(path=path, pid=owner))


def _is_locked(file: Path) -> bool:
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _write(file: Path, text: str) -> None:
    partial = file.with_name(f".{file.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(file)


def begin_sleep(path: Path, options: Mapping[str, object], threads: int = 1) -> SleepJob:
    """Runs `siesta sleep PATH ...` in a process of its own that outlives this one; returns when it has begun.

    Args:
        path: The learner's folder.
        options: Those of the command, by name; what is None is left out.
        threads: How many it computes with.

    Raises:
        SiestaError: It could not begin; the sentence is its own.
    """
    if threads < 1:
        raise BadInput(f"a sleep computes with at least one thread, not {threads}")
    given = {f"--{name.replace('_', '-')}": str(value) for name, value in options.items() if value is not None}
    job = SleepJob(path)
    if (standing := job.status()).running:
        raise Busy(_ASLEEP.format(path=path, pid=standing.pid))
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(  # noqa: S603 - our own command, and no shell
            [sys.executable, "-m", "siesta", "sleep", str(path), *chain.from_iterable(given.items())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": str(threads), "TERM": "dumb", "COLUMNS": "1000"},
        )
        end = time.monotonic() + _STARTING
        while time.monotonic() < end and process.poll() is None and not _begun(job.status(), process.pid):
            time.sleep(0.05)
        if process.poll() not in (None, 0):
            log.seek(0)
            raise _refused(path, log.read().decode("utf-8", "replace"), process.returncode)
    Thread(target=process.wait, daemon=True).start()  # a process that ends is kept as a zombie until it is looked at
    return job


def _begun(status: SleepStatus, pid: int) -> bool:
    """Whether all that it was told has proved right; one that failed will end in a moment."""
    return status.pid == pid and (status.progress is not None or status.state in ("waiting", "done"))


def _refused(path: Path, printed: str, code: int) -> SiestaError:
    """What it said before it ended; a traceback is for whoever looks into it, and says nothing to others."""
    words = [line.removeprefix("error: ") for line in printed.splitlines() if line.startswith("error: ")]
    sentence = words[-1] if words else f"it ended with code {code}: run `siesta sleep {path}` to see why"
    kinds: dict[int, type[SiestaError]] = {kind.exit_code: kind for kind in (Busy, DiskRefused)}
    return kinds.get(code, BadInput)(sentence)
