"""The memory of a learner: one SQLite database, a few tensor files, and a byte budget.

One transaction holds a sample's codes and class, its class's running sum and count, and the eviction it caused;
nothing half-done is ever visible, and what `add` returned from survives the death of the process, or of the machine.
One process teaches and one sleeps at a time, maybe another one; any number read.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor

from siesta.contracts import Ids, Memory
from siesta.errors import BadInput, Busy, Damaged
from siesta.store import files, schema
from siesta.store.generations import Edit, Generation, Generations, now
from siesta.store.labels import clean_label
from siesta.store.schema import row_checksum
from siesta.store.settings import read_settings, write_settings

__all__ = [
    "DURABILITIES",
    "OVERHEAD_BYTES",
    "Access",
    "ClassRecord",
    "NewSample",
    "Outdated",
    "Recent",
    "Snapshot",
    "Store",
    "Stored",
    "Sums",
    "sleeper_lock",
    "teacher_lock",
]

OVERHEAD_BYTES = 32
"""What a sample counts in the budget beside its codes: ids, class, counters."""

_EVICTION = 1  # purpose number of the random stream that picks who goes
_KEPT_GENERATIONS = 5
_AT_ONCE = 256  # samples that are embedded together before a generation is used
_LAST_FEW = 8  # that many may be left to be embedded while nobody can teach
_HELD_OUT, _HELD_OUT_FROM, _HELD_OUT_EVERY = 5, 20, 4  # of a class: at most five, the 20th, the 24th, ...

Access = Literal["read", "teach", "sleep"]
"""What a process opens a store for."""

DURABILITIES: dict[str, str] = {"process": "NORMAL", "power": "FULL"}
"""What survives what: the death of the process, or that of the machine; and what SQLite calls it."""

Tensors = Mapping[str, Tensor]


class Outdated(Exception):
    """Features that another generation made than the one in use: make them again."""


class Sums(Protocol):
    """Sums of z by class, as the top of one generation sees what was taught after it was made."""

    def take(self, classes: npt.NDArray[np.int32], codes: npt.NDArray[np.uint8]) -> None:
        """Counts samples in: their class ids (B,) and codes (B, code_bytes)."""

    def totals(self, taught: Mapping[int, int]) -> Iterable[tuple[int, int, npt.NDArray[np.float64]]]:
        """Class id, count and sum (D,), given how many samples of each class were ever taught."""


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
    """A learner at one moment.

    Attributes:
        generation: The one in use.
        weights: Its weights, by name of file.
        classes: All of them.
        recent: What was taught since it was made.
        newest: The newest sample of all.
    """

    generation: Generation
    weights: dict[str, dict[str, Tensor]]
    classes: list[ClassRecord]
    recent: list[Recent]
    newest: int


_writers: weakref.WeakValueDictionary[Path, Store] = weakref.WeakValueDictionary()


def teacher_lock(path: Path) -> files.Lock:
    """Held by the one who teaches; in one process the newer takes over."""
    with files.disk_errors(path):
        previous = _writers.get(path.resolve())
        if previous is not None:
            previous.close()
        return files.Lock(path / "lock", lambda pid: f"{path} is being taught by process {pid}: wait for it or stop it")


def sleeper_lock(path: Path) -> files.Lock:
    """Held by the one who changes weights."""
    with files.disk_errors(path):
        return files.Lock(
            path / "sleep.lock", lambda pid: f"{path} is asleep already, in process {pid}: wait for it or wake it"
        )


class Store:
    """Samples under a byte budget. Made by `create`, found again by `open`; `path` None keeps all in RAM."""

    def __init__(
        self, path: Path | None, connection: sqlite3.Connection, access: Access, lock: files.Lock | None = None
    ) -> None:
        """Takes an open connection; use `create` or `open`."""
        self.path = path
        self.generations = Generations(path, connection)
        self._connection = connection
        self._access, self._lock = access, lock
        self._constant: Mapping[str, Tensors] = {}
        self._sleeping = False
        self.settings: dict[str, Any] = read_settings(connection, path)
        self.code_bytes = int(self.settings["code_bytes"])
        self.capacity = int(self.settings["memory_bytes"]) // (self.code_bytes + OVERHEAD_BYTES)
        self._holds_out = bool(self.settings.get("held_out"))  # learners of old do not
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
            connection = schema.connect(None, read_only=False, synchronous="OFF")
            cls._fill(connection, settings, {}, {})
            store = cls(None, connection, "teach")
            store._constant = constant
            store.generations.kept_in_ram(0, generation)
            return store
        path = path.absolute()
        cls.check_free(path)
        with files.disk_errors(path), schema.database_errors(path):
            outer = Path(tempfile.mkdtemp(prefix=f".{path.name[:100]}.", suffix=".partial", dir=path.parent))
            partial = outer / "learner"
            try:
                hashes = files.replace_folder(partial, constant)
                first = files.replace_folder(partial / "generations" / "000000", generation)
                connection = schema.connect(partial / schema.DATABASE, read_only=False, synchronous="FULL")
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
        with schema.transaction(connection):
            write_settings(connection, {**settings, "hashes": hashes})
            Generations.first(connection, first)

    @classmethod
    def open(cls, path: Path, access: Access = "teach", durability: str = "process") -> Store:
        """Opens a store on disk; a second process that wants to teach is refused, readers and a sleeper never are.

        In one process the newer teacher takes over, so that `x = open(path)` may follow `x = create(path)`.
        """
        if durability not in DURABILITIES:
            raise BadInput(f"there is no durability '{durability}': choose one of {', '.join(DURABILITIES)}")
        path = path.absolute()
        with files.disk_errors(path):
            if not path.exists():
                raise BadInput(f"there is no learner at {path}: make one with `siesta new {path}`")
            if not (path / schema.DATABASE).is_file():
                raise BadInput(f"{path} is not a siesta learner: make one with `siesta new`")
        lock = None
        if access == "teach":
            lock = teacher_lock(path)
        try:
            with schema.database_errors(path):
                store = cls(path, _connected(path, access, durability), access, lock)
                if access == "teach":
                    store.tidy()
                    _writers[path.resolve()] = store
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        return store

    def tidy(self) -> None:
        """Removes what a crash left behind, unless somebody sleeps: what looks left behind may then be on its way."""
        with suppress(Busy), self.sleeping():
            self.generations.prune(_KEPT_GENERATIONS)
            self._name_files()

    def _check_writable(self, access: Access) -> None:
        if self._access == "read":
            raise BadInput(f"{self.path} cannot be written to: it was opened read-only")
        if access == "teach" and self._access != "teach":
            raise BadInput(f"{self.path} was opened to sleep on: open it to teach it")

    @contextmanager
    def sleeping(self) -> Iterator[None]:
        """Inside, generations may be added and used; nobody else sleeps on this store, but teaching goes on."""
        self._check_writable("sleep")
        lock = None
        if self.path is not None:
            lock = sleeper_lock(self.path)
        self._sleeping = True
        try:
            yield
        finally:
            self._sleeping = False
            if lock is not None:
                lock.release()

    def close(self) -> None:
        """Ends the connection; a writer's lock is freed."""
        self._connection.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    # -- samples --------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        if self._access != "teach":  # a teacher elsewhere may have added some
            self._recount()
        return self._count

    @property
    def bytes_used(self) -> int:
        """What the stored samples count in the budget."""
        return len(self) * (self.code_bytes + OVERHEAD_BYTES)

    def bytes_on_disk(self) -> int:
        """What all files of the learner take."""
        return files.folder_bytes(self.path) if self.path is not None else 0

    def add(
        self, samples: Sequence[NewSample], generation: int | None = None, error: float | None = None
    ) -> list[Stored]:
        """Stores samples in one transaction; when full, the largest class pays.

        Each sample's feature is added to its class's running sum, in order.

        Args:
            samples: What to store.
            generation: That which made the features; the one in use when None.
            error: Relative error of the codec on one of them, where it was measured.

        Raises:
            Outdated: Another one is in use by now; nothing was stored.
        """
        self._check_writable("teach")
        try:
            return self._add(samples, generation, error)
        except BaseException:
            self._recount()  # an interrupt may have come before the commit, or just after it
            raise

    def _recount(self) -> None:
        with self._errors():
            (count,) = self._connection.execute("SELECT coalesce(sum(stored), 0) FROM classes").fetchone()
        if not isinstance(count, int) or count < 0:
            raise Damaged(f"{self.path}/store.sqlite has miscounted its samples: `siesta repair` counts them anew")
        self._count = count

    def _add(self, samples: Sequence[NewSample], generation: int | None, error: float | None) -> list[Stored]:
        count, stored, sums = self._count, [], _Sums(self._connection)
        with self._errors(), schema.transaction(self._connection):
            if generation not in (None, self.generations.used()):
                raise Outdated
            for sample in samples:
                while count >= self.capacity:
                    self._evict()
                    count -= 1
                class_id = self._class_of(clean_label(sample.label))
                stored.append(Stored(self._insert(class_id, sample), class_id))
                sums.add(class_id, sample.feature)
                count += 1
            sums.write()
            if error is not None:
                self._connection.execute(_DRIFT, {"error": error, "slowest": _DRIFT_OVER})
        self._count = count
        return stored

    def drift(self) -> tuple[int, float]:
        """On how many samples the codec's relative error was measured, and its mean over about the last hundred."""
        with self._errors():
            row = self._connection.execute("SELECT count, error FROM drift").fetchone()
        return (0, 0.0) if row is None else (int(row[0]), float(row[1]))

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
        slot, taught, held = execute(
            "UPDATE classes SET taught = taught + 1, stored = stored + 1 WHERE id = ?"
            " RETURNING stored - 1, taught, held",
            (class_id,),
        ).fetchone()
        hold = self._holds_out and held < _HELD_OUT and taught >= _HELD_OUT_FROM and taught % _HELD_OUT_EVERY == 0
        (sample_id,) = execute(
            "INSERT INTO samples (class_id, slot, rehearsed, held) VALUES (?, ?, 0, ?) RETURNING id",
            (class_id, slot, hold),
        ).fetchone()
        if hold:
            execute("UPDATE classes SET held = held + 1 WHERE id = ?", (class_id,))
        execute("INSERT INTO codes VALUES (?, ?, ?)", (sample_id, row_checksum(sample_id, sample.codes), sample.codes))
        if sample.key is not None:
            execute("INSERT OR REPLACE INTO keys VALUES (?, ?)", (sample.key, sample_id))
        return int(sample_id)

    def _evict(self) -> None:
        """Drops a random sample of the class with the most; the class's last slot fills the gap."""
        execute = self._connection.execute
        class_id, stored = execute("SELECT id, stored FROM classes ORDER BY stored DESC, id LIMIT 1").fetchone()
        slot = int(np.random.default_rng((self.settings["seed"], _EVICTION, self._newest())).integers(stored))
        row = execute(
            "DELETE FROM samples WHERE class_id = ? AND slot = ? RETURNING id, held", (class_id, slot)
        ).fetchone()
        if row is None:
            raise self._lost_a_sample()
        gone, held = row
        execute("UPDATE samples SET slot = ? WHERE class_id = ? AND slot = ?", (slot, class_id, stored - 1))
        execute("DELETE FROM codes WHERE id = ?", (gone,))
        execute("UPDATE classes SET stored = stored - 1, held = held - ? WHERE id = ?", (held, class_id))

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
            if checksum != row_checksum(sample_id, codes):
                raise Damaged(f"sample {sample_id} of {self.path} is damaged: `siesta repair` keeps the rest")
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
            raise self._lost_a_sample()
        return int(row[0])

    def _lost_a_sample(self) -> Damaged:
        return Damaged(f"{self.path}/store.sqlite has lost a sample: `siesta repair` keeps the rest")

    def memory(self, newest: int | None = None) -> Memory:
        """The narrow view of what is stored and not held out, for a policy: a scan of the small table only.

        Args:
            newest: Samples that came after it are left out.
        """
        with self._errors():
            columns = self._connection.execute(
                "SELECT group_concat(id), group_concat(class_id), group_concat(rehearsed) FROM samples"
                " WHERE NOT held AND id <= coalesce(?, id)",
                (newest,),
            ).fetchone()
            new = self._connection.execute(
                "SELECT id FROM classes JOIN recent ON id = class_id WHERE taught = count"
            ).fetchall()
        ids, classes, rehearsed = (np.fromstring(column or "", dtype=np.int64, sep=",") for column in columns)
        new_classes = np.array([row[0] for row in new], dtype=np.int32)
        return Memory(ids, classes.astype(np.int32), rehearsed.astype(np.int32), new_classes)

    def held_out(self, newest: int) -> tuple[Ids, npt.NDArray[np.int32]]:
        """Samples up to `newest` that no sleep rehearses, to be asked about after it: ids (B,) and class ids (B,)."""
        with self._errors():
            rows = self._connection.execute(
                "SELECT id, class_id FROM samples WHERE held AND id <= ? ORDER BY id", (newest,)
            ).fetchall()
        ids, classes = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        return ids, classes.astype(np.int32)

    def known_keys(self, keys: Iterable[int]) -> dict[int, int]:
        """Those of the keys under which something was taught already, with the sample's id."""
        with self._errors():
            rows = self._connection.execute(
                "SELECT key, sample_id FROM keys WHERE key IN (SELECT value FROM json_each(?))",
                (json.dumps(list(keys)),),
            )
            return dict(rows.fetchall())

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
            if checksum != row_checksum(class_id, total):
                raise Damaged(f"the sums of class '{label}' of {self.path} are damaged: `siesta repair` rebuilds them")
        return [
            Recent(class_id, label, count, np.frombuffer(total, dtype=np.float64))
            for class_id, label, count, _, total in rows
        ]

    # -- changing one's mind ---------------------------------------------------------------------------------------

    def rename(self, label: str, new: str) -> None:
        """Gives a class another name."""
        record, clean = self.class_named(label), clean_label(new)
        if any(other.label == clean for other in self.classes()):
            raise BadInput(f"there is a class '{clean}' already: merge the two")
        with self._changing({"what": "rename", "label": record.label, "to": clean}):
            self._connection.execute("UPDATE classes SET label = ? WHERE id = ?", (clean, record.id))

    def merge(self, label: str, into: str, heads: Edit) -> None:
        """Makes the samples of one class those of another; `heads` does the same to the heads."""
        gone, stays = self.class_named(label), self.class_named(into)
        if gone == stays:
            raise BadInput(f"'{gone.label}' is one class already: name two")
        execute = self._connection.execute
        with self._changing({"what": "merge", "label": gone.label, "into": stays.label}, heads):
            execute(
                "UPDATE samples SET class_id = ?, slot = slot + ? WHERE class_id = ?", (stays.id, stays.stored, gone.id)
            )
            execute(
                "UPDATE classes SET taught = taught + ?, stored = stored + ?,"
                " held = held + (SELECT held FROM classes WHERE id = ?) WHERE id = ?",
                (gone.taught, gone.stored, gone.id, stays.id),
            )
            sums = {recent.class_id: recent for recent in self.recent((gone.id, stays.id))}
            if gone.id in sums:
                both = list(sums.values())
                total = _sum_row(stays.id, sum(some.count for some in both), sum(some.total for some in both))  # type: ignore[arg-type]
                execute(_INSERT_SUM, total)
            self._drop_class(gone.id)

    def forget_class(self, label: str, heads: Edit) -> None:
        """Removes a class, its samples and all that was made of them; `heads` does so in the heads."""
        record = self.class_named(label)
        execute = self._connection.execute
        with self._changing({"what": "forget", "label": record.label}, heads, forgets=True):
            for statement in _FORGET:
                execute(statement, (record.id,))
            execute("DELETE FROM samples WHERE class_id = ?", (record.id,))
            self._drop_class(record.id)
        self._recount()

    def forget_sample(self, sample_id: int, feature: npt.NDArray[np.float32], heads: Edit) -> None:
        """Removes a sample and what it added to its class; `feature` is its z, and `heads` the same for the heads."""
        with self._changing({"what": "forget", "sample": sample_id}, heads, forgets=True):
            self._take_out(sample_id, feature)
        self._recount()

    def correct(self, sample_id: int, sample: NewSample, heads: Edit) -> Stored:
        """Stores a sample anew, under another label and id, in the place of an old one."""
        with self._changing({"what": "correct", "sample": sample_id, "label": sample.label}, heads):
            self._take_out(sample_id, sample.feature)
            class_id, sums = self._class_of(clean_label(sample.label)), _Sums(self._connection)
            stored = Stored(self._insert(class_id, sample), class_id)
            sums.add(class_id, sample.feature)
            sums.write()
        self._recount()
        return stored

    def audit(self) -> list[dict[str, Any]]:
        """What was changed after it was taught, oldest first."""
        with self._errors():
            rows = self._connection.execute("SELECT made, what FROM audit ORDER BY id").fetchall()
        return [{"made": made, **json.loads(what)} for made, what in rows]

    def class_named(self, label: str) -> ClassRecord:
        """The class of a label."""
        for record in self.classes():
            if record.label == label:
                return record
        raise BadInput(f"there is no class '{label}': `siesta info` lists them")

    def class_of_sample(self, sample_id: int) -> int:
        """The class id of a stored sample."""
        with self._errors():
            row = self._connection.execute("SELECT class_id FROM samples WHERE id = ?", (sample_id,)).fetchone()
        if row is None:
            raise BadInput(f"there is no sample {sample_id}: it was never stored, evicted or forgotten")
        return int(row[0])

    def _take_out(self, sample_id: int, feature: npt.NDArray[np.float32]) -> None:
        """Removes a sample, in the caller's transaction; what was taught since the last sleep loses its z."""
        execute = self._connection.execute
        class_id, slot, held = execute(
            "DELETE FROM samples WHERE id = ? RETURNING class_id, slot, held", (sample_id,)
        ).fetchone()
        (last,) = execute(
            "UPDATE classes SET taught = taught - 1, stored = stored - 1, held = held - ? WHERE id = ?"
            " RETURNING stored",
            (held, class_id),
        ).fetchone()
        execute("UPDATE samples SET slot = ? WHERE class_id = ? AND slot = ?", (slot, class_id, last))
        execute("DELETE FROM codes WHERE id = ?", (sample_id,))
        execute("DELETE FROM keys WHERE sample_id = ?", (sample_id,))
        if sample_id > self.generations.get(self.generations.used()).since:
            for recent in self.recent([class_id]):
                row = _sum_row(class_id, recent.count - 1, recent.total - feature)
                execute("DELETE FROM recent WHERE class_id = ?", (class_id,))
                if recent.count > 1:
                    execute(_INSERT_SUM, row)
        if execute("SELECT taught FROM classes WHERE id = ?", (class_id,)).fetchone() == (0,):
            self._drop_class(class_id)

    def _drop_class(self, class_id: int) -> None:
        self._connection.execute("DELETE FROM recent WHERE class_id = ?", (class_id,))
        self._connection.execute("DELETE FROM classes WHERE id = ?", (class_id,))

    @contextmanager
    def _changing(self, what: Mapping[str, Any], heads: Edit | None = None, forgets: bool = False) -> Iterator[None]:
        """One transaction over what was taught and the heads of all generations; asleep, so that nobody makes one.

        With `forgets`, what is deleted leaves no trace in any file.
        """
        self._check_writable("teach")
        self._check_sleeping()
        with self._errors(), files.disk_errors(self.path or Path()):
            hashes = None if heads is None else self.generations.write_beside("head", heads)
            with schema.transaction(self._connection):
                yield
                if hashes is not None:
                    self.generations.vouch("head", hashes)
                self._connection.execute("INSERT INTO audit (made, what) VALUES (?, ?)", (now(), json.dumps(what)))
            self.generations.finish()
            if forgets and self.path is not None:
                self._connection.execute("VACUUM")  # pages that were freed, and rests of rows in others
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # -- weights --------------------------------------------------------------------------------------------------

    def constant(self, name: str) -> dict[str, Tensor]:
        """Tensors of a file that never changes."""
        if self.path is None:
            return dict(self._constant[name])
        return files.read_vouched(self.path, name, self._setting("hashes")[name])

    def _setting(self, name: str) -> Any:
        """A setting as it is now; only a new codec changes any."""
        with self._errors():
            (value,) = self._connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return json.loads(value)

    def codec_hash(self) -> str:
        """Changes with the codec."""
        return "" if self.path is None else str(self._setting("hashes")["codec"])

    def memory_ids(self) -> Ids:
        """All stored samples, oldest first, those that are held out included."""
        with self._errors():
            (column,) = self._connection.execute("SELECT group_concat(id) FROM samples").fetchone()
        return np.sort(np.fromstring(column or "", dtype=np.int64, sep=","))

    def renew_codec(
        self,
        tensors: Tensors,
        error: float,
        codes: Iterable[tuple[Ids, npt.NDArray[np.uint8]]],
        what: Mapping[str, Any],
    ) -> None:
        """Puts another codec in the place of the old one, with other codes for every sample, in one transaction.

        Args:
            tensors: Of the codec.
            error: Its relative error on the pictures that it was fitted on.
            codes: Ids (B,) and codes (B, code_bytes), part by part; read inside the transaction.
            what: JSON values for the audit.
        """
        self._check_writable("teach")
        self._check_sleeping()
        hashes = self._setting("hashes")
        with self._errors(), files.disk_errors(self.path or Path()):
            if self.path is not None:
                hashes["codec"] = files.write_beside(self.path, "codec", tensors)
            with schema.transaction(self._connection):
                for ids, some in codes:
                    rows = [
                        (schema.row_checksum(sample_id, data), data, sample_id)
                        for sample_id, data in zip(ids.tolist(), map(bytes, some), strict=True)
                    ]
                    self._connection.executemany("UPDATE codes SET checksum = ?, codes = ? WHERE id = ?", rows)
                write_settings(self._connection, {**self.settings, "hashes": hashes, "codec_error": error})
                self._connection.execute("DELETE FROM drift")
                self._connection.execute("INSERT INTO audit (made, what) VALUES (?, ?)", (now(), json.dumps(what)))
            self._constant = {**self._constant, "codec": tensors}
            self.settings.update(hashes=hashes, codec_error=error)
            self._name_files()

    def _name_files(self) -> None:
        """Files that a crash kept from getting their names get them."""
        if self.path is not None:
            files.name_vouched(self.path, self._setting("hashes"))

    def generation(self) -> int:
        """Number of the weights in use."""
        with self._errors():
            return self.generations.used()

    def version(self) -> int:
        """Another number whenever another process has changed something."""
        with self._errors():
            (number,) = self._connection.execute("PRAGMA data_version").fetchone()
        return int(number)

    def snapshot(self) -> Snapshot:
        """The generation in use with what was taught since, all of one moment, even while somebody swaps."""
        with self._errors():
            self._connection.execute("BEGIN")
            try:
                generation = self.generations.get(self.generations.used())
                classes = self.classes()
                recent = self.recent(record.id for record in classes)
                newest = self._newest()
            finally:
                self._connection.execute("COMMIT")
        try:
            return Snapshot(generation, self.generations.read(generation), classes, recent, newest)
        except Damaged:
            if self.generation() == generation.number:
                raise
            return self.snapshot()  # swaps went by while we read, and our files with them

    def _newest(self) -> int:
        row = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'samples'").fetchone()
        return 0 if row is None else int(row[0])

    def add_generation(self, tensors: Mapping[str, Tensors], since: int, report: Mapping[str, Any]) -> int:
        """Keeps new weights beside those in use.

        Args:
            tensors: Tensor files of the new generation, by name.
            since: The newest sample that its head has inside.
            report: JSON values to keep about the sleep.

        Returns:
            Its number.
        """
        self._check_sleeping()
        with self._errors(), files.disk_errors(self.path or Path()):
            return self.generations.add(tensors, since, report)

    def use_generation(self, number: int, sums: Sums, rehearsed: Ids | None = None) -> None:
        """Puts weights in use in one transaction, together with what was taught since they were made.

        Nearly all of that is embedded before it begins, so that nobody waits for it.

        Args:
            number: Of a generation that is kept.
            sums: Of its top, empty.
            rehearsed: Every id that was rehearsed on the way to it, repeats included.
        """
        self._check_sleeping()
        ids, times = np.unique(np.zeros(0, np.int64) if rehearsed is None else rehearsed, return_counts=True)
        with self._errors():
            newest = self._embed(sums, self.generations.get(number).since, leave=_LAST_FEW)
            with schema.transaction(self._connection):
                self._embed(sums, newest, leave=0)
                self._connection.execute("DELETE FROM recent")
                taught = {record.id: record.taught for record in self.classes()}
                self._connection.executemany(_INSERT_SUM, [_sum_row(*total) for total in sums.totals(taught)])
                self._connection.executemany(
                    "UPDATE samples SET rehearsed = rehearsed + ? WHERE id = ?",
                    zip(times.tolist(), ids.tolist(), strict=True),
                )
                self.generations.use(number)
            with files.disk_errors(self.path or Path()):
                self.generations.prune(_KEPT_GENERATIONS)

    def _embed(self, sums: Sums, since: int, leave: int) -> int:
        """Counts in what was taught after `since`, but for the last `leave`; returns the newest that it counted."""
        while True:
            rows = self._connection.execute(
                "SELECT id, class_id FROM samples WHERE id > ? ORDER BY id LIMIT ?", (since, _AT_ONCE)
            ).fetchall()
            if len(rows) <= leave:
                return since
            ids, classes = np.array(rows, dtype=np.int64).T
            present, codes = self.get(ids)
            sums.take(classes[present].astype(np.int32), codes)
            since = int(ids[-1])

    def _check_sleeping(self) -> None:
        if not self._sleeping:
            raise BadInput("weights are changed asleep only: use `with store.sleeping()`")

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
        row = self._connection.execute(
            "SELECT count, checksum, total FROM recent WHERE class_id = ?", (class_id,)
        ).fetchone()
        if row is None:
            return 0, np.zeros(width)
        count, checksum, total = row
        if checksum != row_checksum(class_id, total):  # written back, it would look whole
            raise Damaged(f"the sums of class {class_id} are damaged: `siesta repair` rebuilds them")
        return count, np.frombuffer(total, dtype=np.float64)

    def write(self) -> None:
        self._connection.executemany(_INSERT_SUM, [_sum_row(class_id, *some) for class_id, some in self._open.items()])


_INSERT_SUM = "INSERT OR REPLACE INTO recent VALUES (?, ?, ?, ?)"
_DRIFT_OVER = 100
_DRIFT = """
INSERT INTO drift VALUES (0, 1, :error) ON CONFLICT (id) DO UPDATE SET
    count = count + 1,
    error = error + (:error - error) / min(count + 1, :slowest)
"""
_FORGET = (
    "DELETE FROM codes WHERE id IN (SELECT id FROM samples WHERE class_id = ?)",
    "DELETE FROM keys WHERE sample_id IN (SELECT id FROM samples WHERE class_id = ?)",
)


def _sum_row(class_id: int, count: int, total: npt.NDArray[np.float64]) -> tuple[int, int, int, bytes]:
    return class_id, count, row_checksum(class_id, total.tobytes()), total.tobytes()


def _connected(path: Path, access: Access, durability: str) -> sqlite3.Connection:
    """A connection to a store in today's format; one of an older siesta is brought to it."""
    connection = schema.connect(path / schema.DATABASE, access == "read", DURABILITIES[durability])
    try:
        if not schema.check_format(connection, path):
            if access == "read":
                connection.close()
                connection = _connected(path, "sleep", durability)
                connection.close()
                return _connected(path, "read", durability)
            schema.migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection
