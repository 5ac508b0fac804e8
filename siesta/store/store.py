"""The memory of a learner: one SQLite database, a few tensor files, and a byte budget.

One transaction holds a sample's codes and class, its class's running sum and count, and the eviction it caused;
nothing half-done is ever visible, and what `add` returned from survives the death of the process, or of the machine.
One process teaches and one sleeps at a time, maybe another one; any number read.
"""

from __future__ import annotations

import json
import sqlite3
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor

from siesta.contracts import Ids, Memory
from siesta.errors import BadInput, Busy, Damaged, DiskRefused
from siesta.store import files, schema
from siesta.store.changes import Changes
from siesta.store.classes import Classes, ClassRecord, Recent, RunningSums
from siesta.store.folder import DURABILITIES, Access, check_free, connected, filled, make_folder
from siesta.store.generations import Generation, Generations
from siesta.store.labels import clean_label
from siesta.store.samples import NewSample, Samples
from siesta.store.settings import read_settings, write_settings
from siesta.store.thumbnails import Thumbnails
from siesta.store.wipe import Wipe

__all__ = [
    "OVERHEAD_BYTES",
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

_ASLEEP = "{path} is asleep, or being changed, in process {pid}: wait for it, or wake it with `siesta wake {path}`"
_KEPT_GENERATIONS = 5
_AT_ONCE = 256  # samples that are embedded together before a generation is used
_LAST_FEW = 8  # that many may be left to be embedded while nobody can teach

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
class Stored:
    """Where a new sample went."""

    id: int
    class_id: int


@dataclass(frozen=True)
class Moment:
    """What a database said at one moment.

    Attributes:
        generation: The one in use.
        classes: All of them.
        recent: What was taught since it was made.
        newest: The newest sample of all.
    """

    generation: Generation
    classes: list[ClassRecord]
    recent: list[Recent]
    newest: int


@dataclass(frozen=True)
class Snapshot(Moment):
    """A learner at one moment: the same, with the weights of the generation, by name of file."""

    weights: dict[str, dict[str, Tensor]]


_writers: weakref.WeakValueDictionary[Path, Store] = weakref.WeakValueDictionary()


def teacher_lock(path: Path) -> files.Lock:
    """Held by the one who teaches; in one process the newer takes over."""
    with files.disk_errors(path):
        previous = _writers.get(path.resolve())
        if previous is not None:
            previous.close()
        return files.Lock(path / "lock", lambda pid: f"{path} is being taught by process {pid}: wait for it or stop it")


def sleeper_lock(path: Path, patience: float = 0.0) -> files.Lock:
    """Held by the one who changes weights."""
    end = time.monotonic() + patience
    while True:
        try:
            with files.disk_errors(path):
                return files.Lock(path / "sleep.lock", lambda pid: _ASLEEP.format(path=path, pid=pid))
        except Busy:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


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
        holds_out = bool(self.settings.get("held_out"))  # learners of old do not
        self._classes = Classes(path, connection)
        self.samples = Samples(path, connection, self._classes, self.code_bytes, holds_out)
        self.thumbnails = Thumbnails(path, connection, int(self.settings["memory_bytes"]))
        self._wipe = Wipe(path, connection)
        self.changes = Changes(connection, self._classes, self.samples, self.generations, self._wipe, self._changing)
        self._count, self._place = 0, self._seen_place()
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
            store = cls(None, filled(schema.connect(None, False, "OFF"), settings, {}, {}), "teach")
            store._constant = constant
            store.generations.kept_in_ram(0, generation)
            return store
        path = path.absolute()
        check_free(path)
        make_folder(path, settings, constant, generation)
        return cls.open(path)

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
                store = cls(path, connected(path, access, durability), access, lock)
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
            if self._wipe.promised:
                with suppress(BadInput):  # there is still no room
                    self._wipe.keep()

    def _check_writable(self, access: Access) -> None:
        if self._access == "read":
            raise BadInput(f"{self.path} cannot be written to: it was opened read-only")
        if access == "teach" and self._access != "teach":
            raise BadInput(f"{self.path} was opened to sleep on: open it to teach it")

    def _seen_place(self) -> tuple[int, int] | None:
        """Device and number of the file that lies where the database does, if any."""
        if self.path is None:
            return None
        try:
            facts = (self.path / schema.DATABASE).stat()
        except OSError:
            return None
        return facts.st_dev, facts.st_ino

    def check_place(self) -> None:
        """Refuses where its folder was removed, moved or replaced: what is written then, nobody finds again."""
        if self._seen_place() != self._place:
            raise DiskRefused(f"{self.path} was removed, moved or replaced while it was open: open it anew")

    @contextmanager
    def sleeping(self, patience: float = 0.0) -> Iterator[None]:
        """Inside, generations may be added and used; nobody else sleeps on this store, but teaching goes on.

        Where somebody else does, it is waited for so many seconds.
        """
        self._check_writable("sleep")
        lock = None
        if self.path is not None:
            lock = sleeper_lock(self.path, patience)
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
        if self.path is not None and _writers.get(self.path.resolve()) is self:
            del _writers[self.path.resolve()]  # whoever takes over may be another thread, and must not close it again

    # -- samples --------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        if self._access != "teach":  # a teacher elsewhere may have added some
            self._recount()
        return self._count

    @property
    def bytes_used(self) -> int:
        """What the stored samples and thumbnails count in the budget."""
        return len(self) * (self.code_bytes + OVERHEAD_BYTES) + self.thumbnails.bytes()

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
        count, stored, sums, room = self._count, [], RunningSums(self._classes), self._room()
        with self._errors(), schema.transaction(self._connection):
            if generation not in (None, self.generations.used()):
                raise Outdated
            for sample in samples:
                count -= self._evict(count - room + 1)
                class_id = self._classes.id_of(clean_label(sample.label))
                stored.append(Stored(self.samples.insert(class_id, sample), class_id))
                sums.add(class_id, sample.feature)
                count += 1
            sums.write()
            if error is not None:
                self._connection.execute(_DRIFT, {"error": error, "slowest": _DRIFT_OVER})
        self._count = count
        return stored

    def _room(self) -> int:
        """For so many samples, beside the thumbnails."""
        return max(self.capacity + -self.thumbnails.bytes() // (self.code_bytes + OVERHEAD_BYTES), 1)

    def _evict(self, count: int) -> int:
        """Drops so many samples, if any, in the caller's transaction; returns how many."""
        for _ in range(count):
            self.samples.evict(self.settings["seed"])
        return max(count, 0)

    def keep_thumbnails(self, pictures: Mapping[int, bytes]) -> None:
        """Keeps small pictures of stored samples, by id; they and the samples together stay within the budget."""
        self._check_writable("teach")
        count = self._count
        try:
            with self._errors(), schema.transaction(self._connection):
                self.thumbnails.put(pictures)
                count -= self._evict(count - self._room())
            self._count = count
        except BaseException:
            self._recount()
            raise

    def drop_thumbnails(self) -> None:
        """Removes all thumbnails, without a trace in a file."""
        self._check_writable("teach")
        if self.thumbnails.by_class():
            with self._errors(), files.disk_errors(self.path or Path()):
                self._wipe.promise()
                with schema.transaction(self._connection):
                    self.thumbnails.clear()
                self._wipe.keep()

    def drift(self) -> tuple[int, float]:
        """On how many samples the codec's relative error was measured, and its mean over about the last hundred."""
        with self._errors():
            row = self._connection.execute("SELECT count, error FROM drift").fetchone()
        return (0, 0.0) if row is None else (int(row[0]), float(row[1]))

    def get(self, ids: Ids) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint8]]:
        """Codes of samples by id; see `Samples.get`."""
        return self.samples.get(ids)

    def memory(self, newest: int | None = None) -> Memory:
        """The narrow view of what is stored and not held out, for a policy; see `Samples.memory`."""
        return self.samples.memory(newest)

    def classes(self) -> list[ClassRecord]:
        """All classes, oldest first."""
        return self._classes.all()

    def class_named(self, label: str) -> ClassRecord:
        """The class of a label."""
        return self._classes.named(label)

    def recent(self, class_ids: Iterable[int]) -> list[Recent]:
        """What was taught of some classes since the last sleep; those of which nothing was are left out."""
        return self._classes.recent(class_ids)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Inside, what was taught may be changed; nobody sleeps on it, and nobody else teaches."""
        self._check_writable("teach")
        self._check_sleeping()
        try:
            with self._errors(), files.disk_errors(self.path or Path()):
                yield
        finally:
            self._recount()

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
        hashes = self._setting("hashes")
        with self._changing():
            if self.path is not None:
                hashes["codec"] = files.write_beside(self.path, "codec", tensors)
            with schema.transaction(self._connection):
                for ids, some in codes:
                    self.samples.recode(ids, some)
                write_settings(self._connection, {**self.settings, "hashes": hashes, "codec_error": error})
                self._connection.execute("DELETE FROM drift")
                self.changes.note(what)
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

    def moment(self) -> Moment:
        """The generation in use with what was taught since, even while somebody swaps."""
        with self._errors():
            self._connection.execute("BEGIN")
            try:
                generation = self.generations.get(self.generations.used())
                classes = self.classes()
                recent = self.recent(record.id for record in classes)
                return Moment(generation, classes, recent, self.samples.newest())
            finally:
                self._connection.execute("COMMIT")

    def snapshot(self) -> Snapshot:
        """The same with its weights."""
        seen = self.moment()
        try:
            return Snapshot(**vars(seen), weights=self.generations.read(seen.generation))
        except Damaged:
            now = self.moment().generation
            if (now.number, now.hashes) == (seen.generation.number, seen.generation.hashes):
                raise
            return self.snapshot()  # a swap or a change went by while we read, and our files with it

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
        with self._errors():
            newest = self._embed(sums, self.generations.get(number).since, leave=_LAST_FEW)
            with schema.transaction(self._connection):
                self._embed(sums, newest, leave=0)
                self._classes.clear_sums()
                for total in sums.totals({record.id: record.taught for record in self.classes()}):
                    self._classes.put_sum(*total)
                if rehearsed is not None:
                    self.samples.count_rehearsed(rehearsed)
                self.generations.use(number)
            with files.disk_errors(self.path or Path()):
                self.generations.prune(_KEPT_GENERATIONS)

    def _embed(self, sums: Sums, since: int, leave: int) -> int:
        """Counts in what was taught after `since`, but for the last `leave`; returns the newest that it counted."""
        while True:
            ids, classes = self.samples.after(since, _AT_ONCE)
            if len(ids) <= leave:
                return since
            present, codes = self.get(ids)
            sums.take(classes[present], codes)
            since = int(ids[-1])

    def _check_sleeping(self) -> None:
        if not self._sleeping:
            raise BadInput("weights are changed asleep only: use `with store.sleeping()`")

    def _errors(self) -> AbstractContextManager[None]:
        return schema.database_errors(self.path) if self.path is not None else nullcontext()


_DRIFT_OVER = 100
_DRIFT = """
INSERT INTO drift VALUES (0, 1, :error) ON CONFLICT (id) DO UPDATE SET
    count = count + 1,
    error = error + (:error - error) / min(count + 1, :slowest)
"""
