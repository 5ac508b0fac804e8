"""The sleeping process's side of a sleep job: writes its status and reads the commands sent to it."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from siesta.contracts import Progress
from siesta.errors import BadInput
from siesta.files import Lock, disk_errors, refuse_links, replace_file
from siesta.sleep.job import COMMAND_FILE, LOCK_FILE, STATUS_FILE, Command, asleep_already, job_folder
from siesta.sleep.report import SleepReport
from siesta.sleep.status import SleepFailure, SleepStatus, State

__all__ = ["Reporter", "reporting"]

_COMMANDS: dict[str, Command] = {command: command for command in get_args(Command)}
_POLL_SECONDS = 0.2  # polling interval for commands, and the shortest time between two writes of the status
_LONGEST_WAIT = 1.0  # longest polling interval in seconds before the sleep begins
_LOCK_SECONDS = 0.5  # a process that only reads the status holds the lock for a moment


class Reporter:
    """Status and commands of the sleep that this process runs; made by `reporting`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        started = datetime.now(UTC).isoformat("T", "seconds")
        self._status = SleepStatus("asleep", "falling asleep", os.getpid(), started)
        self._written = 0.0
        (folder / COMMAND_FILE).unlink(missing_ok=True)
        self._write("asleep", "falling asleep")

    def _write(self, state: State, message: str, **changes: Any) -> None:
        self._status = replace(self._status, state=state, message=message, **changes)
        self._written = time.monotonic()
        with contextlib.suppress(BadInput):  # a full disk must not end a sleep
            replace_file(self._folder / STATUS_FILE, json.dumps(self._status.as_dict()), sync=False)

    @property
    def woken(self) -> bool:
        """Whether the command to wake up was sent."""
        return self.command() == "wake"

    def command(self) -> Command | None:
        """Return the last command that was sent, if any."""
        try:
            return _COMMANDS.get((self._folder / COMMAND_FILE).read_text("ascii"))
        except (OSError, ValueError):
            return None

    def show(self, state: State, message: str, progress: Mapping[str, float] | None = None) -> None:
        """Write the status of a sleep that another machine makes."""
        if (state, message) != (self._status.state, self._status.message) or self._due:
            self._write(state, message, progress=progress)

    @property
    def _due(self) -> bool:
        return time.monotonic() - self._written > _POLL_SECONDS

    def on_progress(self, progress: Progress) -> bool:
        """Write where the sleep stands, pause while told to, and return True when it must wake up.

        Called after each batch.
        """
        if self._due:
            self._write("asleep", "asleep", progress=progress.as_dict())
        if self.command() == "pause":
            self._write("paused", "paused", progress=progress.as_dict())
            while self.command() == "pause":
                time.sleep(_POLL_SECONDS)
            self._write("asleep", "asleep", progress=progress.as_dict())
        return self.woken

    def wait(self, seconds_left: Callable[[], float], message: str) -> bool:
        """Wait until `seconds_left()` is zero; return False when the command to wake up comes first."""
        while (left := seconds_left()) > 0:
            self._write("waiting", message, progress=None)
            if self.woken:
                self._write("done", "woken before it began")
                return False
            time.sleep(min(left, _LONGEST_WAIT))
        return True

    def done(self, report: SleepReport) -> None:
        """Write that the sleep ended with this report."""
        self._write("done", report.summary(), report=report.as_dict())

    def failed(self, error: BaseException) -> None:
        """Write that the sleep ended with this error."""
        message = str(error) or "interrupted before the first update"
        self._write("failed", message, failure=SleepFailure.of(error))


@contextmanager
def reporting(path: Path) -> Iterator[Reporter]:
    """Report a sleep of the learner at `path` to other processes, its failure included.

    Raises:
        Busy: A sleep of this learner is being reported already, by this process or another one.
        DiskRefused: The status cannot be written.
    """
    folder = job_folder(path)
    refuse_links(path)
    with disk_errors(folder):
        folder.mkdir(exist_ok=True)
        lock = Lock(folder / LOCK_FILE, lambda pid: str(asleep_already(path, pid)), _LOCK_SECONDS)
    try:
        with disk_errors(folder):
            reporter = Reporter(folder)
        try:
            yield reporter
        except BaseException as error:
            reporter.failed(error)
            raise
    finally:
        lock.release()
