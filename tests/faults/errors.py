"""Operations during which the disk refuses one call after the other."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from siesta.errors import Applied, SiestaError
from siesta.learner.integrity import check, repair
from tests.faults import shim
from tests.faults.crashes import NAME, Recording, unexpected
from tests.faults.invariants import state_of, unsound
from tests.faults.journal import write_tree
from tests.faults.operations import Operation, open_learner, picture

__all__ = ["DISKS", "Disk", "refusals"]

_EXIT_CODE = 7
_NO_ROOM = ("full", "No space left on device")
_UNSYNCED = "may have been made"
_UNREADABLE_PAGE = ("database disk image is malformed", "unable to get the page")  # SQLite calls it damaged


@dataclass(frozen=True)
class Disk:
    """How a disk refuses: with which error, which kinds of calls, and whether it goes on refusing."""

    error: int
    kinds: int
    lasting: bool


DISKS = {
    "full": Disk(errno.ENOSPC, shim.WRITE | shim.NAME, lasting=True),
    "failing once": Disk(errno.EIO, shim.ALL, lasting=False),
    "failing from then on": Disk(errno.EIO, shim.ALL & ~shim.REMOVE, lasting=True),
}


def refusals(
    operation: Operation, recording: Recording, disk: Disk, numbers: Iterable[int], folder: Path
) -> Iterator[tuple[str, list[str]]]:
    """Yield a description of each refused call, and what is wrong afterwards.

    Args:
        operation: Is run again and again, each time on a new folder.
        recording: The same operation on a disk that refuses nothing.
        disk: How the disk refuses.
        numbers: Numbers of the refused calls; it ends with the first that the operation does not reach.
        folder: The folder; it must not exist.
    """
    for number in numbers:
        write_tree(folder, recording.before)
        try:
            with shim.failing(folder, disk.kinds, number, disk.error, lasting=disk.lasting) as failed:
                acknowledged, error = _run(operation, folder / NAME)
            if not failed[0]:
                return
            problems = [*_judge(error, disk), *_examine(operation, recording, acknowledged, error, folder / NAME)]
            yield f"call {number} refused: {error}", problems
        finally:
            shutil.rmtree(folder)


def _run(operation: Operation, path: Path) -> tuple[int, Exception | None]:
    """Run an operation; return the number of acknowledged steps, and the error."""
    steps: list[int] = []
    try:
        operation.run(path, "process", lambda: steps.append(1))
    except Exception as error:  # which of them are right is judged later
        return len(steps), error
    return len(steps), None


def _judge(error: Exception | None, disk: Disk) -> Iterator[str]:
    """Yield what is wrong with an error itself."""
    if error is None:
        return
    if not isinstance(error, SiestaError):
        yield f"{type(error).__name__} instead of an error that a user can act on"
    elif error.exit_code != _EXIT_CODE and not any(words in str(error) for words in _UNREADABLE_PAGE):
        yield f"exit code {error.exit_code}: {error}"
    elif disk.error == errno.ENOSPC and not any(words in str(error) for words in _NO_ROOM):
        yield f"it does not say that the disk is full: {error}"
    if "\n" in str(error):
        yield "a message of several lines"


def _examine(
    operation: Operation, recording: Recording, acknowledged: int, error: Exception | None, path: Path
) -> Iterator[str]:
    """Yield what is wrong with the learner when the disk works again."""
    states = recording.states[acknowledged : acknowledged + 2]
    if error is None:
        states = recording.states[-1:]
    elif isinstance(error, Applied):
        states = states[1:]
    elif _UNSYNCED not in str(error):
        states = states[:1]
    try:
        if not path.exists():
            if None not in states:
                yield "the learner is gone"
            return
        if operation.damages and check(path):
            repair(path)
        with open_learner(path) as learner:
            yield from unexpected(state_of(learner), states)
            yield from unsound(learner)
            learner.learn_one(picture(90), "ant")
        yield from (f"afterwards: {found.words}" for found in check(path))
    except (AssertionError, SiestaError, OSError, ValueError, LookupError, TypeError) as problem:
        yield f"{type(problem).__name__}: {problem}"
