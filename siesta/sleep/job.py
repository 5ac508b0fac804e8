"""The sleep of a learner as a job that other processes can start, follow, pause and end.

A process that sleeps keeps three files in the learner's folder (see `reporter`):

    birds.siesta/sleep/status.json    its status, written several times a second
                       wish           the last command sent to it: pause, resume or wake
                       alive          locked as long as the process lives, whatever the status says

The sleep of a pack (`siesta pack`) keeps them beside the pack, in `PACK.sleep`.

This module does not import the learner: `start_sleep` runs this package's own command line in a new process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Literal

from siesta.errors import BadInput, Busy, DiskRefused, SiestaError
from siesta.extras import require_torch
from siesta.files import disk_errors, is_locked, refuse_links, replace_file
from siesta.sleep.options import SleepOptions
from siesta.sleep.status import SleepStatus

__all__ = [
    "COMMAND_FILE",
    "LOCK_FILE",
    "STATUS_FILE",
    "Command",
    "SleepJob",
    "asleep_already",
    "job_folder",
    "start_sleep",
]

Command = Literal["pause", "resume", "wake"]
"""What can be sent to a sleep."""

STATUS_FILE = "status.json"
COMMAND_FILE = "wish"
LOCK_FILE = "alive"

_POLL_SECONDS = 0.2
_START_POLL_SECONDS = 0.05
_START_SECONDS = 20.0  # how long `start_sleep` waits for the first batch, to report a sleep that cannot begin


def job_folder(path: Path) -> Path:
    """Return the folder with the files of a sleep job: inside a learner's folder, beside the file of a pack."""
    return path.with_name(f"{path.name}.sleep") if path.is_file() else path / "sleep"


def asleep_already(path: Path, pid: object) -> Busy:
    """Return the error for a second sleep of the same learner."""
    return Busy(f"{path} is asleep already, in process {pid}: wait for it, or wake it with `siesta wake {path}`")


class SleepJob:
    """The last sleep of a learner, in whatever process it runs.

    Example:
        >>> SleepJob(Path("birds.siesta")).status().state
        'never'
    """

    def __init__(self, path: Path) -> None:
        """Follow the sleep of the learner in the folder `path`."""
        self._path = path
        self._folder = job_folder(path)

    def status(self) -> SleepStatus:
        """Return the current status."""
        alive = is_locked(self._folder / LOCK_FILE)  # checked first: a process that ends now has written its status
        try:
            status = SleepStatus.from_dict(json.loads((self._folder / STATUS_FILE).read_text("utf-8")))
        except FileNotFoundError:
            return SleepStatus("never", "no sleep has been started")
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return SleepStatus("killed", "its status cannot be read: start it again")
        if status.running and not alive:
            message = "its process was killed, nothing was changed: start it again"
            return replace(status, state="killed", message=message)
        return status

    def pause(self) -> None:
        """Pause the sleep until `resume`; a time budget runs on."""
        self._send("pause")

    def resume(self) -> None:
        """Continue a paused sleep."""
        self._send("resume")

    def wake(self) -> None:
        """End the sleep after the current batch; what it has consolidated is kept."""
        self._send("wake")

    def kill(self) -> None:
        """End the process of the sleep at once; nothing of it is kept."""
        status = self.status()
        if status.running and status.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(status.pid, signal.SIGKILL)

    def _send(self, command: Command) -> None:
        if not self.status().running:
            raise BadInput(f"{self._path} is not asleep: there is nothing to {command}")
        refuse_links(self._path)
        with disk_errors(self._folder):
            replace_file(self._folder / COMMAND_FILE, command, sync=False)

    def wait(self, seconds: float | None = None) -> SleepStatus:
        """Wait until the sleep has ended, for at most `seconds`, and return its status."""
        end = None if seconds is None else time.monotonic() + seconds
        while (status := self.status()).running and (end is None or time.monotonic() < end):
            time.sleep(_POLL_SECONDS)
        return status


def start_sleep(
    path: Path,
    options: SleepOptions,
    *,
    threads: int = 1,
    nice: int = 0,
    when: str | None = None,
    daily: str | None = None,
    sleeper: str | None = None,
    sleeper_token: Path | None = None,
) -> SleepJob:
    """Start `siesta sleep` in a process that outlives this one, and return when it has begun.

    Args:
        path: The learner's folder, or the file of a pack.
        options: Of the sleep.
        threads: Number of threads.
        nice: Niceness of its process, 0 to 19.
        when: Begin after an idle time, as in `Idle.parse`.
        daily: Sleep every day in a window, as in `Window.parse`.
        sleeper: Address of a service that trains in place of this machine.
        sleeper_token: A file with the token for it.

    Raises:
        SiestaError: The sleep could not begin; kind and message are those of the process.
    """
    if threads < 1:
        raise BadInput(f"threads must be at least 1, not {threads}")
    if sleeper is None:
        require_torch("sleep")
    job = SleepJob(path)
    current = job.status()
    if current.running:
        raise asleep_already(path, current.pid)
    flags = {"--when": when, "--daily": daily, "--sleeper": sleeper, "--sleeper-token-file": sleeper_token}
    command = [sys.executable, "-m", "siesta", "sleep", str(path), "--options", options.to_json(), "--nice", str(nice)]
    command += [part for flag, value in flags.items() if value is not None for part in (flag, str(value))]
    process = _process(command, threads)
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None and not _has_begun(job.status(), process.pid):
        time.sleep(_START_POLL_SECONDS)
    if process.poll() not in (None, 0):
        raise _start_error(path, job.status(), process)
    Thread(target=process.wait, daemon=True).start()  # a process that ends stays a zombie until it is waited for
    return job


def _process(command: Sequence[str], threads: int) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own."""
    return subprocess.Popen(  # noqa: S603 - our own command, and no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
    )


def _has_begun(status: SleepStatus, pid: int) -> bool:
    """Return whether the process has passed every check; one that failed ends in a moment."""
    return status.pid == pid and (status.progress is not None or status.state in ("waiting", "done"))


def _start_error(path: Path, status: SleepStatus, process: subprocess.Popen[bytes]) -> SiestaError:
    """Return the error that ended a process before its sleep began."""
    if status.pid == process.pid and status.failure is not None and status.failure.exit_code != SiestaError.exit_code:
        return status.failure.error(status.message)
    if process.returncode == Busy.exit_code:  # another process was faster, so the status is its own
        return asleep_already(path, status.pid)
    if process.returncode == DiskRefused.exit_code:
        return DiskRefused(f"{job_folder(path)} cannot be written: check its disk and its permissions")
    return BadInput(
        f"the sleep ended with exit code {process.returncode} before it began: run `siesta sleep {path}` to see why"
    )
