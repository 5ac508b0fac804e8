"""The status of a sleep job, as it is written to `sleep/status.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from siesta.errors import BadInput, Busy, Damaged, DiskRefused, SiestaError

__all__ = ["SleepFailure", "SleepStatus", "State"]

State = Literal["never", "waiting", "asleep", "paused", "done", "failed", "killed"]

_RUNNING: tuple[State, ...] = ("waiting", "asleep", "paused")
_INTERRUPTED = 130  # exit code
_ERRORS: tuple[type[SiestaError], ...] = (BadInput, Busy, Damaged, DiskRefused)


@dataclass(frozen=True)
class SleepFailure:
    """How a sleep failed.

    Attributes:
        kind: Name of the exception's class.
        exit_code: What the command line ends with for it.
    """

    kind: str
    exit_code: int

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Return the record of an exception."""
        exit_code = _INTERRUPTED if isinstance(error, KeyboardInterrupt) else getattr(error, "exit_code", 1)
        return cls(type(error).__name__, exit_code)

    def error(self, message: str) -> SiestaError:
        """Return an exception of the same kind with this message; a BadInput for one that is not a SiestaError."""
        return next((kind for kind in _ERRORS if kind.__name__ == self.kind), BadInput)(message)


@dataclass(frozen=True)
class SleepStatus:
    """The status of a learner's last sleep.

    Attributes:
        state: "never" before the first one, "waiting" for its time, "asleep", "paused", "done", "failed", or "killed"
            when its process died and nothing of it was kept.
        message: The state as a sentence; the report's summary or the error's message once it has ended.
        pid: Process id.
        started: When it began, as ISO 8601 in UTC.
        progress: The `Progress` after a recent batch, as plain values; None before the first.
        report: The `SleepReport` as plain values, once it is done.
        failure: How it failed, if it did.
    """

    state: State
    message: str
    pid: int | None = None
    started: str | None = None
    progress: Mapping[str, float] | None = None
    report: Mapping[str, Any] | None = None
    failure: SleepFailure | None = None

    @property
    def running(self) -> bool:
        """Whether the sleep has not ended yet."""
        return self.state in _RUNNING

    def as_dict(self) -> dict[str, Any]:
        """Return the status as plain values, for JSON; the message is called "words" there."""
        values = asdict(self)
        return {"state": values.pop("state"), "words": values.pop("message"), **values}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the status that `as_dict` gave, also one written by version 0.1, which has no failure."""
        values = dict(values)
        failure = values.pop("failure", None)
        return cls(message=values.pop("words"), failure=failure and SleepFailure(**failure), **values)
