"""A sleep that another machine makes: pack, send, follow, take; the learner is used as it was until the last step."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from siesta.contracts import OnProgress, Progress
from siesta.errors import BadInput, SiestaError
from siesta.learner.pack import pack_learner
from siesta.learner.take import take_sleep
from siesta.service.connection import RequestRefused, Unreachable
from siesta.service.pack_schemas import PackSleepRequest
from siesta.service.schemas import SleepStatusResponse
from siesta.service.sleeper_client import SleeperClient
from siesta.sleep.job import job_folder
from siesta.sleep.options import SleepOptions
from siesta.sleep.report import SleepReport
from siesta.sleep.reporter import Reporter
from siesta.store import Store

__all__ = ["PATIENCE_SECONDS", "sleep_remotely"]

T = TypeVar("T")

PATIENCE_SECONDS = 60.0
"""How long a sleeper that does not answer is asked again; shorter than a pack is kept there."""

_POLL_SECONDS = 0.5
_UNCHANGED = "the learner is as it was, so start the sleep again"


def sleep_remotely(
    path: Path, options: SleepOptions, sleeper: SleeperClient, reporter: Reporter, on_progress: OnProgress
) -> SleepReport:
    """Let another machine sleep for a learner, which other processes may teach and edit meanwhile.

    Ctrl-C, or the command to wake, ends the sleep there and takes what was trained.

    Args:
        path: The learner's directory.
        options: How to sleep; `judge` cannot be used.
        sleeper: The other machine.
        reporter: Writes the status that other processes read.
        on_progress: Called whenever the sleeper has trained on.

    Raises:
        SiestaError: The sleep was not made, or could not be brought back; the learner has not changed.
    """
    request = _request(options)
    known = sleeper.has_bottom(_bottom_hash(path))  # first, as it shows whether the sleeper answers
    reporter.show("waiting", "sending the memory to the sleeper")
    with _sent(path, sleeper, bottom=not known) as pack:
        night = _Night(sleeper, pack, reporter, on_progress)
        night.patiently(lambda: sleeper.sleep(pack, request))
        night.follow()
        reporter.show("waiting", "fetching the new weights")
        file = job_folder(path) / "slept"
        try:
            night.patiently(lambda: sleeper.fetch(pack, file))
            report = take_sleep(path, file)
        finally:
            file.unlink(missing_ok=True)
    reporter.done(report)
    return report


def _request(options: SleepOptions) -> dict[str, Any]:
    """Return options as a sleeper takes them."""
    if options.judge is not None:
        raise BadInput("a sleeper has no images, so it cannot use --judge: leave it out, or sleep here")
    options.to_json()  # raises for objects that cannot be sent
    budget = options.budget()
    chosen = {name: getattr(options, name) for name in PackSleepRequest.model_fields}
    values = {**chosen, "updates": budget.updates, "seconds": budget.seconds}
    defaults = {known.name: known.default for known in fields(SleepOptions)}
    return {name: value for name, value in values.items() if value != defaults[name]}


def _bottom_hash(path: Path) -> str:
    with contextlib.closing(Store.open(path, "read")) as store:
        return store.constants.hashes().get("bottom", "0" * 64)


@contextmanager
def _sent(path: Path, sleeper: SleeperClient, *, bottom: bool) -> Iterator[str]:
    """Send a pack, and delete it there in the end; here it is deleted at once."""
    file = job_folder(path) / "pack"
    file.unlink(missing_ok=True)  # of a process that was killed
    try:
        pack_learner(path, file, bottom=bottom)
        pack = sleeper.send_pack(file)
    finally:
        file.unlink(missing_ok=True)
    try:
        yield pack
    finally:
        with contextlib.suppress(SiestaError):  # it deletes a pack that no device asks for
            sleeper.delete(pack)


class _Night:
    """The sleep on one pack, seen from here."""

    def __init__(self, sleeper: SleeperClient, pack: str, reporter: Reporter, on_progress: OnProgress) -> None:
        self._sleeper = sleeper
        self._pack = pack
        self._reporter = reporter
        self._on_progress = on_progress
        self._interrupted = False
        self._sent: str | None = None

    def follow(self) -> None:
        """Report a sleep until it is done, and pass commands on."""
        while True:
            try:
                status = self.patiently(lambda: self._sleeper.status(self._pack))
                if not status.running:
                    break
                self._show(status)
                self._pass_command(status)
                time.sleep(_POLL_SECONDS)
            except KeyboardInterrupt:
                if self._interrupted:
                    raise
                self._interrupted = True
        if status.state != "done":
            raise BadInput(f"the sleeper failed ({status.words}): {_UNCHANGED}")

    def _show(self, status: SleepStatusResponse) -> None:
        now = status.progress
        self._reporter.show(status.state, status.words, None if now is None else now.model_dump())
        if now is not None:
            speed, left = now.updates_per_second or 0.0, now.seconds_left or 0.0
            progress = Progress(now.updates, now.fraction, now.loss or 0.0, now.rate, speed, left, now.round)
            self._interrupted |= bool(self._on_progress(progress))

    def _pass_command(self, status: SleepStatusResponse) -> None:
        command = "wake" if self._interrupted else self._reporter.command()
        if command is None or command == self._sent:
            return
        if command == "wake" and status.state == "waiting":
            raise BadInput("the sleep was ended before it began: the learner is as it was")
        with contextlib.suppress(RequestRefused):  # it has just ended, or has not begun
            self.patiently(lambda: self._sleeper.command(self._pack, command))
            self._sent = command

    def patiently(self, request: Callable[[], T]) -> T:
        """Make a request, again and again while the sleeper does not answer."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return request()
            except (Unreachable, RequestRefused) as error:
                if isinstance(error, RequestRefused) and error.status == 404:
                    raise BadInput(f"the sleeper has lost the pack, as after a restart: {_UNCHANGED}") from error
                if isinstance(error, RequestRefused) and error.status not in (429, 502, 503, 504):
                    raise
                if time.monotonic() > end:
                    raise BadInput(f"the connection to the sleeper was lost ({error}): {_UNCHANGED}") from error
                self._reporter.show("waiting", "the sleeper does not answer: trying again")
                time.sleep(_POLL_SECONDS)
