"""The suites: crashes and refused calls during each operation, and damaged files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from tests.faults.crashes import crashes, examine, record
from tests.faults.damage import PLACES, outcome_of
from tests.faults.errors import DISKS, refusals
from tests.faults.invariants import opened
from tests.faults.operations import OPERATIONS, make_learner

__all__ = ["QUICK", "SUITES", "Case", "Extent", "run"]


@dataclass(frozen=True)
class Case:
    """One crash, refused call or damage.

    Attributes:
        suite: "kill", "power cut", "refused call" or "damage".
        part: The operation; for damage, its place.
        point: Description of the point.
        problems: What is wrong after it.
        outcome: What became of a damaged learner.
    """

    suite: str
    part: str
    point: str
    problems: Sequence[str]
    outcome: str = ""


@dataclass(frozen=True)
class Extent:
    """How much is run.

    Attributes:
        operations: Names of operations.
        crashes: One of so many crashes is examined.
        errors: One of so many calls is refused.
        damage: One of so many places is damaged.
        per_page: Damaged bytes in each page of the database but the first, all of whose bytes are.
        engine: What makes the learner; "onnx" exports graphs, which `repair` needs and takes seconds.
    """

    operations: Sequence[str] = tuple(OPERATIONS)
    crashes: int = 1
    errors: int = 1
    damage: int = 1
    per_page: int = 60
    engine: str = "onnx"


QUICK = Extent(("learn", "correct", "sleep", "tokens"), 20, 40, 400, engine="torch")
"""What takes some seconds."""


def run(
    suites: Sequence[str], operations: Sequence[str] | None, extent: Extent, folder: Path
) -> Iterator[Iterator[Case]]:
    """Yield the cases of suites, part by part: of one operation, or at one place.

    Args:
        suites: Keys of `SUITES`.
        operations: Keys of `OPERATIONS`, instead of those of the extent.
        extent: How much is run.
        folder: Where learners are put for the time being.
    """
    make_learner(folder / "base", extent.engine)
    for suite in suites:
        if suite == "damage":
            yield from (_damage(place, extent, folder) for place in PLACES)
        else:
            yield from (SUITES[suite](name, extent, folder) for name in operations or extent.operations)


def _crashes(name: str, extent: Extent, folder: Path) -> Iterator[Case]:
    for durability in ("process", "power"):
        recording = record(OPERATIONS[name], durability, folder / "base", folder / "recorded")
        for crash, allowed in islice(crashes(recording, durability), 0, None, extent.crashes):
            problems = examine(OPERATIONS[name], crash.tree, allowed, folder / "crashed")
            yield Case(crash.kind, name, f"{crash.point} ({durability})", problems)


def _errors(name: str, extent: Extent, folder: Path) -> Iterator[Case]:
    recording = record(OPERATIONS[name], "process", folder / "base", folder / "recorded")
    for words, disk in DISKS.items():
        numbers = count(1, extent.errors)
        for point, problems in refusals(OPERATIONS[name], recording, disk, numbers, folder / "refused"):
            yield Case("refused call", name, f"disk {words}, {point}", problems)


def _damage(place: str, extent: Extent, folder: Path) -> Iterator[Case]:
    before = opened(folder / "base")
    for damage in islice(PLACES[place](folder / "base", extent.per_page), 0, None, extent.damage):
        outcome = outcome_of(damage, folder / "base", before, folder / "damaged")
        yield Case("damage", place, damage.words, outcome.problems, outcome.kind)


SUITES = {"crashes": _crashes, "errors": _errors, "damage": _damage}
