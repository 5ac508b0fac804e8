"""Operations that are killed, or lose power, at each point in turn.

An operation runs once and is recorded. What a crash would leave is computed from the journal and examined.
"""

from __future__ import annotations

import hashlib
import itertools
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from siesta.errors import BadInput, SiestaError
from siesta.learner.integrity import check, repair
from tests.faults import shim
from tests.faults.invariants import State, opened, state_of, unsound
from tests.faults.journal import Crash, Tree, kills, power_cuts, tree_of, write_tree
from tests.faults.operations import Operation, open_learner, picture
from tests.faults.shim import Record

__all__ = ["NAME", "Recording", "crashes", "examine", "record", "unexpected"]

NAME = "learner.siesta"
"""Name of the learner's folder, in the folder that is watched."""


@dataclass(frozen=True)
class Recording:
    """An operation that was recorded.

    Attributes:
        before: Files and folders before the operation.
        records: What it did to them.
        states: The state before and after each acknowledged step; None while there is no learner.
    """

    before: Tree
    records: list[Record]
    states: list[State | None]


def record(operation: Operation, durability: str, base: Path, folder: Path) -> Recording:
    """Run an operation on a copy of the learner `base` in a new folder, and record it."""
    folder.mkdir()
    path = folder / NAME
    states: list[State | None] = [None]
    if operation.prepare is not None:
        shutil.copytree(base, path)
        operation.prepare(path)
        if not operation.damages:
            states = [_state_of_copy(path)]

    def acknowledge() -> None:
        shim.acknowledge()
        with shim.unwatched():
            states.append(_state_of_copy(path))

    before = tree_of(folder)
    with shim.recording(folder) as records:
        operation.run(path, durability, acknowledge)
    after = tree_of(folder)
    *_, last = kills(before, records)
    assert last.tree == {name: data for name, data in after.items() if not name.endswith("-shm")}, "calls were missed"
    shutil.rmtree(folder)
    return Recording(before, records, states[1:] * 2 if operation.damages else states)


def _state_of_copy(path: Path) -> State:
    with tempfile.TemporaryDirectory(dir=path.parents[1]) as folder:
        copy = shutil.copytree(path, Path(folder, "copy"), ignore=shutil.ignore_patterns("*-shm"))
        return opened(copy)


def crashes(recording: Recording, durability: str, seeds: int = 3) -> Iterator[tuple[Crash, list[State | None]]]:
    """Yield different crashes of a recorded operation, and the states that are allowed after each.

    Kills are independent of the durability. What was acknowledged with the durability "process" may be lost with the
    power, but only the newest of it.
    """
    states = recording.states
    seen = set()
    for crash in itertools.chain(
        kills(recording.before, recording.records) if durability == "process" else (),
        power_cuts(recording.before, recording.records, seeds),
    ):
        oldest = 0 if durability == "process" and crash.kind == "power cut" else crash.acknowledged
        content = repr((oldest, crash.acknowledged, sorted(crash.tree.items()))).encode()
        digest = hashlib.sha256(content).digest()
        if digest not in seen:
            seen.add(digest)
            yield crash, states[oldest : crash.acknowledged + 2]


def examine(operation: Operation, tree: Tree, allowed: Iterable[State | None], folder: Path) -> list[str]:
    """Return what is wrong with the learner that a crash left; it is put into a new folder.

    It is opened at once by one user, and checked and repaired first by another one.
    """
    problems: list[str] = []
    for examine_by in (_open, _check) if not operation.damages else (_check,):
        write_tree(folder, tree)
        try:
            if (folder / NAME).exists():
                problems += examine_by(folder / NAME, list(allowed), operation.damages)
            elif None not in allowed:
                problems.append("the learner is gone")
        except (AssertionError, SiestaError, OSError, ValueError, LookupError, TypeError) as error:
            problems.append(f"{examine_by.__name__}: {type(error).__name__}: {error}")
        finally:
            shutil.rmtree(folder)
    return problems


def _open(path: Path, allowed: list[State | None], _damaged: bool) -> Iterator[str]:
    with open_learner(path) as learner:
        yield from unexpected(state_of(learner), allowed)
        yield from unsound(learner)
        learner.learn_one(picture(90), "ant")
        yield from unsound(learner)
    yield from (f"after opening: {found.words}" for found in check(path))


def _check(path: Path, allowed: list[State | None], damaged: bool) -> Iterator[str]:
    try:
        findings = check(path)
    except BadInput as error:
        if "older siesta" in str(error):
            return
        raise
    lines = repair(path)
    if not damaged:
        yield from (f"check: {found.words}" for found in findings)
        yield from (f"repair: {line}" for line in lines)
    yield from (f"after repair: {found.words}" for found in check(path))
    yield from unexpected(opened(path), allowed)


def unexpected(state: State, allowed: list[State | None]) -> Iterator[str]:
    """Yield how a state differs from those that are allowed."""
    if state not in allowed:
        differences = [state.difference(other) for other in allowed if other is not None]
        yield f"it is in none of {len(allowed)} states, but differs in: {' | '.join(differences)}"
