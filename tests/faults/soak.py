"""A soak: a learner is taught, asked, edited, put to sleep and killed at random moments for as long as one likes.

    python -m tests.faults.soak [--seconds 600] [--seed 0]

One process at a time writes; it takes one random operation after another and answers with what can be seen of the
learner. Until half of the time is over it is left alone, and its memory and files are measured. From then on it is
killed again and again, before, in or after an operation; the learner must then be as before that operation or as after
it. The command adds a row to results/faults.jsonl.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

import numpy as np
import torch

from siesta import Siesta
from siesta.learner.integrity import check
from tests.faults.invariants import unsound
from tests.faults.ledger import CAPACITY, Observed, Operation, carry_out, choose, differences, image
from tests.faults.record import append

__all__ = ["SoakResult", "Usage", "soak"]

_FORKSERVER = multiprocessing.get_context("forkserver")
_FORKSERVER.set_forkserver_preload(["siesta.learner", "tests.faults.ledger"])  # torch is imported once for all children
_OPERATIONS_A_LIFE = 12
_LONGEST_ANSWER = 300.0  # seconds


@dataclass(frozen=True)
class Usage:
    """What a process uses: resident bytes and open file descriptors."""

    memory: float
    files: float

    @classmethod
    def now(cls) -> Usage:
        """Measure this process, on Linux."""
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(pages * os.sysconf("SC_PAGE_SIZE"), len(list(Path("/proc/self/fd").iterdir())))

    @classmethod
    def typical(cls, found: list[Usage]) -> Usage:
        """Return the median of some measurements."""
        return cls(median(usage.memory for usage in found), median(usage.files for usage in found))


@dataclass
class SoakResult:
    """What a soak did and found.

    Attributes:
        operations: Completed operations by name.
        kills: Kills of the writing process.
        kills_in_operation: Those of them that fell into an operation.
        kept: How many of these operations were there afterwards; the others were not, as a whole.
        predictions: Predictions of a process that only reads.
        faults: What was wrong, one sentence each.
        writer: Usage of the process that is not killed, after each of its operations.
        reader: Usage of the process that reads, likewise.
    """

    operations: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    kills_in_operation: int = 0
    kept: int = 0
    predictions: int = 0
    faults: list[str] = field(default_factory=list)
    writer: list[Usage] = field(default_factory=list)
    reader: list[Usage] = field(default_factory=list)

    def growth(self) -> dict[str, Usage]:
        """Return by how much the usage of each process grew from its second quarter to its last."""
        found = {}
        for name, usage in (("writer", self.writer), ("reader", self.reader)):
            quarter = len(usage) // 4
            early, late = Usage.typical(usage[quarter : 2 * quarter]), Usage.typical(usage[-quarter:])
            found[name] = Usage(late.memory - early.memory, late.files - early.files)
        return found


def soak(path: Path, progress: Callable[[int], float], seed: int = 0) -> SoakResult:
    """Make a learner at `path` and use it until it is over.

    Args:
        path: Folder of the learner.
        progress: Maps the number of completed operations to the completed share of the soak.
        seed: Of everything that is random but the moments of the kills.
    """
    return _Soak(path, progress, np.random.default_rng(seed)).run()


class _Soak:
    def __init__(self, path: Path, progress: Callable[[int], float], rng: np.random.Generator) -> None:
        # a discriminant stores all that a cosine head does, and statistics that must equal those of the samples
        with Siesta.create(path, memory=f"{CAPACITY} samples", image_size=32, head="discriminant") as learner:
            self._state = Observed.of(learner)
        self._path = path
        self._progress = progress
        self._rng = rng
        self._number = 0
        self._seconds = 0.1  # that an operation took lately
        self._result = SoakResult()

    def run(self) -> SoakResult:
        with Siesta.open(self._path, read_only=True) as reader:
            self._live(lambda: self._done() < 0.5, reader)
        while self._done() < 1:
            self._live_until(self._completed() + int(self._rng.geometric(1 / _OPERATIONS_A_LIFE)))
        self._examine(None)
        with Siesta.open(self._path) as learner:
            self._report(list(unsound(learner)), None)
        return self._result

    def _live_until(self, completed: int) -> None:
        self._live(lambda: self._completed() < completed and self._done() < 1, None)

    def _completed(self) -> int:
        return self._result.operations.total()

    def _done(self) -> float:
        return self._progress(self._completed())

    def _live(self, goes_on: Callable[[], bool], reader: Siesta | None) -> None:
        """Let a process write for as long as it may; then end it, by a kill if nobody reads."""
        ours, theirs = _FORKSERVER.Pipe()
        child = _FORKSERVER.Process(target=_write, args=(self._path, theirs))
        child.start()
        theirs.close()
        self._receive(ours, None)
        while goes_on():
            operation = self._next()
            start = time.monotonic()
            ours.send(operation)
            usage = self._receive(ours, operation)
            self._seconds = time.monotonic() - start
            self._result.operations[operation.name] += 1
            if reader is not None:
                self._ask(reader)
                self._result.writer.append(usage)
                self._result.reader.append(Usage.now())
        if reader is None:
            self._kill(child, ours)
        else:
            ours.send(None)
            child.join()
        ours.close()

    def _next(self) -> Operation:
        operation = choose(self._state, self._number, self._rng)
        if operation.name == "learn":
            self._number += len(operation.arguments)
        return operation

    def _receive(self, pipe: Connection, operation: Operation | None) -> Usage:
        """Wait for what the writer sees after an operation, and compare it with what is expected."""
        if not pipe.poll(_LONGEST_ANSWER):
            raise TimeoutError(f"no answer to {operation}")
        state: Observed
        usage: Usage
        state, usage = pipe.recv()
        self._report(differences(self._state, operation, state), operation)
        self._state = state
        return usage

    def _report(self, found: list[str], operation: Operation | None) -> None:
        self._result.faults += [f"after {self._completed()} operations, {operation}: {fault}" for fault in found]

    def _ask(self, reader: Siesta) -> None:
        """Compare a prediction of the process that reads with what the writer has told."""
        if not self._state.taught:
            return
        prediction = reader.predict_one(image(int(self._rng.integers(self._number + 1))))
        self._result.predictions += 1
        if prediction.label not in self._state.taught or not 0 < prediction.score <= 1:
            self._report([f"the reader predicts {prediction}"], None)

    def _kill(self, child: multiprocessing.process.BaseProcess, pipe: Connection) -> None:
        """Kill the writer somewhere in an operation, or between two of them."""
        operation = self._next() if self._rng.random() < 0.9 else None
        if operation is not None:
            pipe.send(operation)
        time.sleep(self._seconds * 1.2 * self._rng.random())
        child.kill()
        child.join()
        self._result.kills += 1
        self._result.kills_in_operation += operation is not None
        self._examine(operation)

    def _examine(self, operation: Operation | None) -> None:
        """Compare a learner that nobody writes with what it must be before the operation, or after it."""
        with Siesta.open(self._path, read_only=True) as learner:
            state = Observed.of(learner)
        before = differences(self._state, None, state)
        after = differences(self._state, operation, state)
        if before and after:
            self._report([*before, *after], operation)
        self._result.kept += bool(before)
        self._report([str(finding) for finding in check(self._path)], operation)
        self._state = state


def _write(path: Path, pipe: Connection) -> None:
    """Carry out operations until there are no more; run by the child process."""
    torch.set_num_threads(1)
    with Siesta.open(path) as learner:
        pipe.send((Observed.of(learner), Usage.now()))
        while (operation := pipe.recv()) is not None:
            carry_out(learner, operation)
            pipe.send((Observed.of(learner), Usage.now()))


def main() -> None:
    """Run a soak and add its row to the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        result = soak(Path(folder) / "soak", lambda _: (time.monotonic() - start) / options.seconds, options.seed)
    row = {
        "bench": "soak",
        "config": {"seconds": options.seconds, "seed": options.seed},
        "command": f"python -m tests.faults.soak --seconds {options.seconds:g} --seed {options.seed}",
        "seconds": round(time.monotonic() - start, 1),
        "operations": dict(result.operations),
        "kills": result.kills,
        "kills_in_operation": result.kills_in_operation,
        "kept": result.kept,
        "predictions": result.predictions,
        "faults": result.faults,
        "growth": {name: asdict(usage) for name, usage in result.growth().items()},
        "memory": {"writer": Usage.typical(result.writer).memory, "reader": Usage.typical(result.reader).memory},
    }
    append(row)
    sys.stdout.write(json.dumps(row, indent=1) + "\n")
    sys.exit(bool(result.faults))


if __name__ == "__main__":
    main()
