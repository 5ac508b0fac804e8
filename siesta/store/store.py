"""The memory of a learner: one SQLite database, a few tensor files, and a byte budget.

One transaction holds a sample's codes and class, its class's running sum and count, and the eviction it caused;
nothing half-done is ever visible, and what `add` returned from survives the death of the process.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
import weakref
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from siesta.contracts import Ids, Memory
from siesta.errors import BadInput, Damaged
from siesta.store import files, schema
from siesta.store.labels import clean_label

__all__ = ["OVERHEAD_BYTES", "ClassRecord", "NewSample", "Recent", "Snapshot", "Store", "Stored"]

OVERHEAD_BYTES = 32
"""What a sample counts in the budget beside its codes: ids, class, counters."""

_EVICTION = 1  # purpose number of the random stream that picks who goes
_KEPT_GENERATIONS = 2  # the one in use, and the one that a reader may just be opening
_DATABASE = "store.sqlite"

Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class NewSample:
    """What is stored of one labelled picture: its codes, its z (for the class's sum), and optionally a key."""

    label: str
    codes: bytes
    feature: npt.NDArray[np.float32]
    key: int | None = None


@dataclass(frozen=True)
class ClassRecord:
    """A class and how many samples of it were ever taught and are still stored."""

    id: int
    label: str
    taught: int
    stored: int


@dataclass(frozen=True)
class Stored:
    """Where a new sample went."""

    id: int
    class_id: int


@dataclass(frozen=True)
class Recent:
    """What was taught of a class since the last sleep: how many samples, and the sum of their z."""

    class_id: int
    label: str
    count: int
    total: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Snapshot:
    """A learner at one moment: weights by file name, all classes, and what was taught since the last sleep."""

    generation: int
    weights: dict[str, dict[str, Tensor]]
    classes: list[ClassRecord]
    recent: list[Recent]


_writers: weakref.WeakValueDictionary[Path, Store] = weakref.WeakValueDictionary()


class Store:
    """Samples under a byte budget. Made by `create`, found again by `open`; `path` None keeps all in RAM."""

    def __init__(self, path: Path | None, connection: sqlite3.Connection, lock: files.WriterLock | None) -> None:
        """Takes an open connection; use `create` or `open`."""
        self.path = path
        self._connection = connection
        self._lock = lock
        self._in_memory: dict[str, Tensors] = {}
        try:
            rows = connection.execute("SELECT name, value FROM settings")
            self.settings: dict[str, Any] = {name: json.loads(value) for name, value in rows}
            self.code_bytes = int(self.settings["code_bytes"])
            self.capacity = int(self.settings["memory_bytes"]) // (self.code_bytes + OVERHEAD_BYTES)
        except (KeyError, TypeError, ValueError) as error:
            raise Damaged(
                f"{path}/store.sqlite has lost its settings: restore it from a copy of the learner"
            ) from error
        self._count = 0
        self._recount()

    # -- making and opening ---------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: Path | None,
        *,
        settings: Mapping[str, Any],
        constant: Mapping[str, Tensors],
        generation: Mapping[str, Tensors],
    ) -> Store:
        """Makes a new store.

        Args:
            path: The folder to make; None for RAM.
            settings: JSON values that never change; `code_bytes`, `memory_bytes` and `seed` are the store's own.
            constant: Tensor files that never change, by name.
            generation: Tensor files of generation 0, by name.
        """
        need = int(settings["code_bytes"]) + OVERHEAD_BYTES
        if int(settings["memory_bytes"]) < need:
            raise BadInput(f"a memory of {settings['memory_bytes']} bytes holds no sample: give at least {need}")
        if path is None:
            connection = schema.connect(None, read_only=False)
            cls._fill(connection, settings, {}, {})
            store = cls(None, connection, None)
            store._in_memory = {**constant, **generation}
            return store
        path = path.absolute()
        cls.check_free(path)
        with files.disk_errors(path), schema.database_errors(path):
            outer = Path(tempfile.mkdtemp(prefix=f".{path.name[:100]}.", suffix=".partial", dir=path.parent))
            partial = outer / "learner"
            try:
                hashes = files.replace_folder(partial, constant)
                first = files.replace_folder(partial / "generations" / _folder(0), generation)
                connection = schema.connect(partial / _DATABASE, read_only=False)
                cls._fill(connection, settings, hashes, first)
                connection.close()
                partial.rename(path)
                files.sync_folder(path.parent)
            finally:
                shutil.rmtree(outer, ignore_errors=True)
        return cls.open(path)

    @staticmethod
    def check_free(path: Path) -> None:
        """Refuses a path at which no store can be made."""
        with files.disk_errors(path):
            if path.exists() or path.is_symlink():
                raise BadInput(f"{path} exists already: choose another name or remove it first")
            if not path.parent.is_dir():
                raise BadInput(f"the folder {path.parent} does not exist: make it first")

    @staticmethod
    def _fill(
        connection: sqlite3.Connection,
        settings: Mapping[str, Any],
        hashes: Mapping[str, str],
        first: Mapping[str, str],
    ) -> None:
        schema.make_tables(connection)
        rows = [(name, json.dumps(value)) for name, value in {**settings, "hashes": hashes}.items()]
        with schema.transaction(connection):
            connection.executemany("INSERT INTO settings VALUES (?, ?)", rows)
            connection.execute("INSERT INTO generations VALUES (0, ?, ?, NULL)", (_now(), json.dumps(first)))

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> Store:
        """Opens a store on disk; a second process that wants to write is refused, readers never are.

        In one process the newer writer takes over, so that `x = open(path)` may follow `x = create(path)`.
        """
        path = path.absolute()
        with files.disk_errors(path):
            if not path.exists():
                raise BadInput(f"there is no learner at {path}: make one with `siesta new {path}`")
            if not (path / _DATABASE).is_file():
                raise BadInput(f"{path} is not a siesta learner: make one with `siesta new`")
        lock = None
        if not read_only:
            with files.disk_errors(path):
                previous = _writers.get(path.resolve())
                if previous is not None:
                    previous.close()
                lock = files.WriterLock(path)
        try:
            with schema.database_errors(path):
                connection = schema.connect(path / _DATABASE, read_only=read_only)
                schema.check_format(connection, path)
                store = cls(path, connection, lock)
                if not read_only:
                    store._remove_old_generations()
                    _writers[path.resolve()] = store
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        return store

    @property
    def _read_only(self) -> bool:
        return self.path is not None and self._lock is None

    def _check_writable(self) -> None:
        if self._read_only:
            raise BadInput(f"{self.path} cannot be written to: it was opened read-only")

    def close(self) -> None:
        """Ends the connection; a writer's lock is freed."""
        self._connection.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    # -- samples --------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        if self._read_only:  # a writer elsewhere may have added some
            self._recount()
        return self._count

    @property
    def bytes_used(self) -> int:
        """What the stored samples count in the budget."""
        return len(self) * (self.code_bytes + OVERHEAD_BYTES)

    def bytes_on_disk(self) -> int:
        """What all files of the learner take."""
        return files.folder_bytes(self.path) if self.path is not None else 0

    def add(self, samples: Sequence[NewSample]) -> list[Stored]:
        """Stores samples in one transaction; when full, the largest class pays.

        Each sample's feature is added to its class's running sum, in order.
        """
        self._check_writable()
        try:
            return self._add(samples)
        except BaseException:
            self._recount()  # an interrupt may have come before the commit, or just after it
            raise

    def _recount(self) -> None:
        with self._errors():
            (count,) = self._connection.execute("SELECT coalesce(sum(stored), 0) FROM classes").fetchone()
        self._count = int(count)

    def _add(self, samples: Sequence[NewSample]) -> list[Stored]:
        count, stored, sums = self._count, [], _Sums(self._connection)
        with self._errors(), schema.transaction(self._connection):
            for sample in samples:
                while count >= self.capacity:
                    self._evict()
                    count -= 1
                class_id = self._class_of(clean_label(sample.label))
                stored.append(Stored(self._insert(class_id, sample), class_id))
                sums.add(class_id, sample.feature)
                count += 1
            sums.write()
        self._count = count
        return stored

    def _class_of(self, label: str) -> int:
        row = self._connection.execute("SELECT id FROM classes WHERE label = ?", (label,)).fetchone()
        if row is None:
            row = self._connection.execute(
                "INSERT INTO classes (label, taught, stored) VALUES (?, 0, 0) RETURNING id", (label,)
            ).fetchone()
        return int(row[0])

    def _insert(self, class_id: int, sample: NewSample) -> int:
        if len(sample.codes) != self.code_bytes:
            raise ValueError(f"codes of {len(sample.codes)} bytes in a store of {self.code_bytes}")
        execute = self._connection.execute
        (slot,) = execute(
            "UPDATE classes SET taught = taught + 1, stored = stored + 1 WHERE id = ? RETURNING stored - 1", (class_id,)
        ).fetchone()
        (sample_id,) = execute(
            "INSERT INTO samples (class_id, slot, rehearsed) VALUES (?, ?, 0) RETURNING id", (class_id, slot)
        ).fetchone()
        execute("INSERT INTO codes VALUES (?, ?, ?)", (sample_id, _checksum(sample_id, sample.codes), sample.codes))
        if sample.key is not None:
            execute("INSERT OR REPLACE INTO keys VALUES (?, ?)", (sample.key, sample_id))
        return int(sample_id)

    def _evict(self) -> None:
        """Drops a random sample of the class with the most; the class's last slot fills the gap."""
        execute = self._connection.execute
        class_id, stored = execute("SELECT id, stored FROM classes ORDER BY stored DESC, id LIMIT 1").fetchone()
        (newest,) = execute("SELECT seq FROM sqlite_sequence WHERE name = 'samples'").fetchone()
        slot = int(np.random.default_rng((self.settings["seed"], _EVICTION, newest)).integers(stored))
        (gone,) = execute(
            "DELETE FROM samples WHERE class_id = ? AND slot = ? RETURNING id", (class_id, slot)
        ).fetchone()
        execute("UPDATE samples SET slot = ? WHERE class_id = ? AND slot = ?", (slot, class_id, stored - 1))
        execute("DELETE FROM codes WHERE id = ?", (gone,))
        execute("UPDATE classes SET stored = stored - 1 WHERE id = ?", (class_id,))

    def get(self, ids: Ids) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint8]]:
        """Codes of samples by id.

        Args:
            ids: Wanted samples, (B,), in any order, repeats allowed.

        Returns:
            Which of them are still there, (B,), and the codes of those, (found, code_bytes), in the order asked for.
        """
        with self._errors():
            rows = self._connection.execute(
                "SELECT id, checksum, codes FROM codes WHERE id IN (SELECT value FROM json_each(?))",
                (json.dumps(ids.tolist()),),
            ).fetchall()
        for sample_id, checksum, codes in rows:
            if checksum != _checksum(sample_id, codes):
                raise Damaged(f"sample {sample_id} of {self.path} is damaged: restore a copy of the learner")
        by_id = {row[0]: row[2] for row in rows}
        present = np.array([sample_id in by_id for sample_id in ids.tolist()], dtype=bool)
        data = b"".join(by_id[sample_id] for sample_id in ids[present].tolist())
        return present, np.frombuffer(data, dtype=np.uint8).reshape(-1, self.code_bytes)

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Ids, npt.NDArray[np.int32]]:
        """Distinct samples, all alike likely, in random order; what is drawn hangs on `rng` and the contents alone.

        Args:
            count: How many; all of them, where fewer are stored.
            rng: Draws places among the classes' slots, so that nothing is scanned and no list of ids kept.

        Returns:
            Ids (B,) and class ids (B,).
        """
        classes = self.classes()
        sizes = np.array([record.stored for record in classes], dtype=np.int64)
        ends, total = np.cumsum(sizes), int(sizes.sum())
        places = rng.choice(total, min(count, total), replace=False) if total else np.zeros(0, dtype=np.int64)
        owners = np.searchsorted(ends, places, side="right")
        class_ids = np.array([record.id for record in classes], dtype=np.int32)[owners]
        slots = places - (ends - sizes)[owners]
        ids = [self._at(*place) for place in zip(class_ids.tolist(), slots.tolist(), strict=True)]
        return np.array(ids, dtype=np.int64), class_ids

    def _at(self, class_id: int, slot: int) -> int:
        """The id of the sample in a slot of a class."""
        with self._errors():
            row = self._connection.execute(
                "SELECT id FROM samples WHERE class_id = ? AND slot = ?", (class_id, slot)
            ).fetchone()
        if row is None:
            raise Damaged(f"{self.path}/store.sqlite has lost a sample: restore it from a copy of the learner")
        return int(row[0])

    def memory(self) -> Memory:
        """The narrow view of what is stored, for a policy: a scan of the small table only."""
        with self._errors():
            columns = self._connection.execute(
                "SELECT group_concat(id), group_concat(class_id), group_concat(rehearsed) FROM samples"
            ).fetchone()
            new = self._connection.execute(
                "SELECT id FROM classes JOIN recent ON id = class_id WHERE taught = count"
            ).fetchall()
        ids, classes, rehearsed = (np.fromstring(column or "", dtype=np.int64, sep=",") for column in columns)
        new_classes = np.array([row[0] for row in new], dtype=np.int32)
        return Memory(ids, classes.astype(np.int32), rehearsed.astype(np.int32), new_classes)

    def known_keys(self, keys: Iterable[int]) -> set[int]:
        """Those of the keys under which something was taught already."""
        with self._errors():
            rows = self._connection.execute(
                "SELECT key FROM keys WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(list(keys)),)
            )
            return {row[0] for row in rows}

    # -- classes --------------------------------------------------------------------------------------------------

    def classes(self) -> list[ClassRecord]:
        """All classes, oldest first."""
        with self._errors():
            rows = self._connection.execute("SELECT id, label, taught, stored FROM classes ORDER BY id").fetchall()
        return [ClassRecord(*row) for row in rows]

    def recent(self, class_ids: Iterable[int]) -> list[Recent]:
        """What was taught of some classes since the last sleep; those of which nothing was are left out."""
        with self._errors():
            rows = self._connection.execute(
                "SELECT class_id, label, count, checksum, total FROM recent JOIN classes ON id = class_id"
                " WHERE class_id IN (SELECT value FROM json_each(?)) ORDER BY class_id",
                (json.dumps(list(class_ids)),),
            ).fetchall()
        for class_id, label, _, checksum, total in rows:
            if checksum != _checksum(class_id, total):
                raise Damaged(f"the sums of class '{label}' of {self.path} are damaged: restore a copy of the learner")
        return [
            Recent(class_id, label, count, np.frombuffer(total, dtype=np.float64))
            for class_id, label, count, _, total in rows
        ]

    # -- weights --------------------------------------------------------------------------------------------------

    def constant(self, name: str) -> dict[str, Tensor]:
        """Tensors of a file that never changes."""
        if self.path is None:
            return dict(self._in_memory[name])
        return files.read_tensors(self.path / f"{name}.safetensors", self.settings["hashes"][name])

    def generation(self) -> int:
        """Number of the weights in use; the sleeps so far."""
        with self._errors():
            (number,) = self._connection.execute("SELECT max(number) FROM generations").fetchone()
        return int(number)

    def snapshot(self) -> Snapshot:
        """The generation in use with what was taught since, all of one moment, even while a writer swaps."""
        with self._errors():
            self._connection.execute("BEGIN")
            try:
                number, hashes = self._connection.execute(
                    "SELECT number, hashes FROM generations ORDER BY number DESC LIMIT 1"
                ).fetchone()
                classes = self.classes()
                recent = self.recent(record.id for record in classes)
            finally:
                self._connection.execute("COMMIT")
        try:
            return Snapshot(number, self._read_generation(number, json.loads(hashes)), classes, recent)
        except Damaged:
            if self.generation() == number:
                raise
            return self.snapshot()  # two swaps went by while we read, and our files with them

    def _read_generation(self, number: int, hashes: Mapping[str, str]) -> dict[str, dict[str, Tensor]]:
        if self.path is None:
            return {name: dict(tensors) for name, tensors in self._in_memory.items()}
        folder = self.path / "generations" / _folder(number)
        return {name: files.read_tensors(folder / f"{name}.safetensors", sha256) for name, sha256 in hashes.items()}

    def swap(self, tensors: Mapping[str, Tensors], rehearsed: Ids, report: Mapping[str, Any]) -> None:
        """Puts new weights in use: written beside the old ones, then pointed at in one transaction.

        The sums start anew, as the new head has them inside.

        Args:
            tensors: Tensor files of the new generation, by name.
            rehearsed: Every id that was rehearsed, repeats included.
            report: JSON values to keep about the sleep.
        """
        self._check_writable()
        number, hashes = self.generation() + 1, {}
        if self.path is not None:
            with files.disk_errors(self.path):
                hashes = files.replace_folder(self.path / "generations" / _folder(number), tensors)
        ids, times = np.unique(rehearsed, return_counts=True)
        with self._errors(), schema.transaction(self._connection):
            self._connection.executemany(
                "UPDATE samples SET rehearsed = rehearsed + ? WHERE id = ?",
                zip(times.tolist(), ids.tolist(), strict=True),
            )
            self._connection.execute("DELETE FROM recent")
            self._connection.execute(
                "INSERT INTO generations VALUES (?, ?, ?, ?)", (number, _now(), json.dumps(hashes), json.dumps(report))
            )
        if self.path is None:
            self._in_memory.update(tensors)
        self._remove_old_generations()

    def reports(self) -> list[dict[str, Any]]:
        """What each sleep so far left behind, oldest first."""
        with self._errors():
            rows = self._connection.execute(
                "SELECT made, report FROM generations WHERE report IS NOT NULL ORDER BY number"
            ).fetchall()
        return [{"made": made, **json.loads(report)} for made, report in rows]

    def _remove_old_generations(self) -> None:
        """Old weights, and new ones that a crash kept from being pointed at."""
        if self.path is None:
            return
        newest = self.generation()
        if not (self.path / "generations" / _folder(newest)).is_dir():
            raise Damaged(
                f"{self.path}/generations/{_folder(newest)} is missing: restore it from a copy of the learner"
            )
        kept = {_folder(number) for number in range(newest - _KEPT_GENERATIONS + 1, newest + 1)}
        for folder in (self.path / "generations").iterdir():
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)

    def _errors(self) -> AbstractContextManager[None]:
        return schema.database_errors(self.path) if self.path is not None else nullcontext()


class _Sums:
    """Running sums of one transaction: each class read once and written once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._open: dict[int, tuple[int, npt.NDArray[np.float64]]] = {}

    def add(self, class_id: int, feature: npt.NDArray[np.float32]) -> None:
        count, total = self._open.get(class_id) or self._read(class_id, len(feature))
        self._open[class_id] = (count + 1, total + feature)

    def _read(self, class_id: int, width: int) -> tuple[int, npt.NDArray[np.float64]]:
        row = self._connection.execute("SELECT count, total FROM recent WHERE class_id = ?", (class_id,)).fetchone()
        return (0, np.zeros(width)) if row is None else (row[0], np.frombuffer(row[1], dtype=np.float64))

    def write(self) -> None:
        rows = [
            (class_id, count, _checksum(class_id, total.tobytes()), total.tobytes())
            for class_id, (count, total) in self._open.items()
        ]
        self._connection.executemany("INSERT OR REPLACE INTO recent VALUES (?, ?, ?, ?)", rows)


def _checksum(row_id: int, data: bytes) -> int:
    """Starts from the id, so that data under a wrong id are noticed too."""
    return zlib.crc32(data, row_id & 0xFFFFFFFF)


def _folder(number: int) -> str:
    return f"{number:06d}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
