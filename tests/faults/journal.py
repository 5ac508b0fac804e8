"""States in which a crash leaves the files below a folder, computed from a recorded journal of changes.

A kill leaves what was written until then, in the middle of a write half of it. A loss of power leaves what was synced;
of the rest anything may survive: bytes of a file in sectors and in any order, names in their order (as a journaling
file system keeps them). A sync of a folder makes its names durable, a sync of a file its bytes and its name.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from tests.faults.shim import Record

__all__ = ["Crash", "Disk", "Tree", "kills", "power_cuts", "tree_of", "write_tree"]

Tree = dict[str, bytes | None]
"""Contents of files, and None for folders, by path."""

_SECTOR = 512
_SHARED_MEMORY = "-shm"  # of SQLite, which the first process that opens the database makes anew


@dataclass(frozen=True)
class Crash:
    """What a crash leaves.

    Attributes:
        kind: "kill" or "power cut".
        point: Description of the moment and of what survives.
        acknowledged: Number of steps that were acknowledged before.
        tree: The files and folders.
    """

    kind: str
    point: str
    acknowledged: int
    tree: Tree


@dataclass
class _File:
    data: bytes = b""
    synced: bytes = b""
    pending: list[Record] = field(default_factory=list)

    def change(self, record: Record) -> None:
        self.data = _changed(self.data, record)
        self.pending.append(record)

    def sync(self) -> None:
        self.synced = self.data
        self.pending = []

    def after_power_cut(self, rng: random.Random | None) -> bytes:
        """Return the synced bytes with some of the later changes, or with none of them."""
        data = self.synced
        if rng is None:
            return data
        for record in self.pending:
            survives = rng.random()
            if survives < 0.5:
                data = _changed(data, record)
            elif survives < 0.7 and record.kind == "W":
                data = _changed(data, _cut(record, rng.randrange(len(record.data) + 1) // _SECTOR * _SECTOR))
        return data


def _changed(data: bytes, record: Record) -> bytes:
    size = record.offset
    start = data[:size] + bytes(max(size - len(data), 0))
    return start if record.kind == "T" else start + record.data + data[size + len(record.data) :]


def _cut(record: Record, size: int) -> Record:
    return replace(record, data=record.data[:size])


@dataclass
class Disk:
    """Files and folders to which records are applied one by one.

    Attributes:
        names: Files, and None for folders, by path.
    """

    names: dict[str, _File | None]

    def __post_init__(self) -> None:
        self._history = [dict(self.names)]  # the names after each change of them
        self._changed_in: list[set[str]] = [set()]  # what makes that change durable: a sync of one of these
        self._durable = 0

    @classmethod
    def of(cls, tree: Tree) -> Disk:
        """Return a disk on which everything is synced."""
        return cls({name: None if data is None else _File(data, data) for name, data in tree.items()})

    def apply(self, record: Record) -> None:
        """Make the change that is recorded."""
        if record.kind in "WT":
            file = self.names[record.name]
            assert file is not None
            file.change(record)
        elif record.kind == "S":
            self._sync(record.name)
        elif record.kind != "A":
            self._change_names(record)

    def _change_names(self, record: Record) -> None:
        target = record.data.decode()
        if record.kind == "C":
            self.names[record.name] = _File()
        elif record.kind == "D":
            self.names[record.name] = None
        elif record.kind == "U":
            del self.names[record.name]
        elif record.kind == "L":
            self.names[target] = self.names[record.name]
        else:
            for name in [name for name in self.names if PurePosixPath(name).is_relative_to(record.name)]:
                self.names[target + name[len(record.name) :]] = self.names.pop(name)
        self._history.append(dict(self.names))
        places = {str(PurePosixPath(name).parent) for name in (record.name, target) if name}
        self._changed_in.append(places | ({record.name} if record.kind in "CD" else set()))

    def _sync(self, name: str) -> None:
        file = self.names.get(name)
        if file is not None:
            file.sync()
        changes = [index for index, places in enumerate(self._changed_in) if (name or ".") in places]
        self._durable = max([self._durable, *changes])

    def tree(self) -> Tree:
        """Return what is there after a kill."""
        return {name: None if file is None else file.data for name, file in self.names.items() if _lasts(name)}

    def after_power_cut(self, keeps_names: bool, rng: random.Random | None) -> Tree:
        """Return what is there after a loss of power.

        Args:
            keeps_names: Whether changes of names survive that were not synced.
            rng: Chooses which unsynced bytes survive; none do without it.
        """
        names = self._history[-1 if keeps_names else self._durable]
        return {
            name: None if file is None else file.after_power_cut(rng) for name, file in names.items() if _lasts(name)
        }


def _lasts(name: str) -> bool:
    return not name.endswith(_SHARED_MEMORY)


def kills(before: Tree, records: Sequence[Record]) -> Iterator[Crash]:
    """Yield what a kill leaves after each change, and in the middle of each write."""
    disk = Disk.of(before)
    acknowledged = 0
    yield Crash("kill", "at the start", 0, disk.tree())
    for number, record in enumerate(records):
        point = f"after call {number} ({record.kind} {record.name})"
        acknowledged += record.kind == "A"
        if not _lasts(record.name):
            disk.apply(record)
            continue
        if record.kind == "W" and len(record.data) > 1:
            half = Disk.of(disk.tree())
            half.apply(_cut(record, len(record.data) // 2))
            yield Crash("kill", f"{point}, half of it", acknowledged, half.tree())
        disk.apply(record)
        if record.kind not in "SA":
            yield Crash("kill", point, acknowledged, disk.tree())


def power_cuts(before: Tree, records: Sequence[Record], seeds: int) -> Iterator[Crash]:
    """Yield what a loss of power leaves before each sync and at each acknowledgement.

    Args:
        before: What was there, all of it synced.
        records: The journal.
        seeds: Number of random choices of what survives, besides all names with none of the bytes, and nothing.
    """
    disk = Disk.of(before)
    acknowledged = 0
    for number, record in enumerate([*records, Record("A", "end", 0, b"")]):
        acknowledged += record.kind == "A" and record.name != "end"
        if record.kind in "SA":
            point = f"at call {number} ({record.kind} {record.name})"
            yield Crash("power cut", f"{point}, nothing survives", acknowledged, disk.after_power_cut(False, None))
            yield Crash("power cut", f"{point}, names survive", acknowledged, disk.after_power_cut(True, None))
            for seed in range(seeds):
                rng = random.Random(f"{seed} {number}")
                tree = disk.after_power_cut(True, rng)
                yield Crash("power cut", f"{point}, choice {seed}", acknowledged, tree)
        if _lasts(record.name):
            disk.apply(record)


def tree_of(folder: Path) -> Tree:
    """Return what is below a folder."""
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in folder.rglob("*")}


def write_tree(folder: Path, tree: Tree) -> None:
    """Make a folder with these contents."""
    folder.mkdir()
    for name, data in sorted(tree.items()):
        if data is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(data)
