"""The memory of a learner: one SQLite database, a few tensor files, and a byte budget.

A transaction holds a sample's codes and class, the class's sum and count, and the eviction that the sample causes.
No other process ever sees a part of it, and what `add` has returned survives the end of the process, or with the
durability "power" the loss of power.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from siesta.contracts import Ids
from siesta.errors import BadInput, Busy, DiskRefused, SiestaError
from siesta.files import folder_bytes
from siesta.store import schema
from siesta.store.classes import Classes, RunningSums
from siesta.store.constants import ConstantTensors
from siesta.store.drift import CodecDrift
from siesta.store.edits import StoreEdits
from siesta.store.eviction import OVERHEAD_BYTES, MemoryBudget
from siesta.store.folder import check_new_path, create_folder, fill_database, require_learner
from siesta.store.generations import Generations
from siesta.store.labels import clean_label
from siesta.store.packs import Packs
from siesta.store.rejections import RejectionTable
from siesta.store.salvage import remove_leftovers
from siesta.store.samples import NewSample, SampleTable
from siesta.store.secure_delete import SecureDelete
from siesta.store.session import DURABILITIES, Access, Session
from siesta.store.settings import read_settings, write_settings
from siesta.store.snapshot import RowSnapshot, Snapshot, Tables, read_row_snapshot, read_snapshot
from siesta.store.statistics import Arrays, StatisticsTable
from siesta.store.swap import WeightSwap
from siesta.store.tensor_files import Tensors
from siesta.store.thumbnails import Thumbnails

__all__ = ["OutdatedFeatures", "Store", "StoredSample"]


class OutdatedFeatures(Exception):
    """The features of new samples were made by a generation that is not active any more: recompute them."""


@dataclass(frozen=True)
class StoredSample:
    """The ids that a new sample was given, and whether it is held out from rehearsal and statistics."""

    id: int
    class_id: int
    held: bool = False


class Store:
    """Samples under a byte budget; made by `create` and opened again by `open`.

    Attributes:
        path: The folder of the learner; None for a store in memory.
        settings: Its settings, as JSON values.
        code_bytes: Bytes of the codes of one sample.
        session: The open connection, the locks and the right to write.
        samples: Codes, keys and rehearsal counts.
        classes: Labels, counts, and sums of what was taught since the last sleep.
        generations: Weights that are kept.
        swap: Activates one of them.
        constants: Tensors that no sleep changes.
        rejections: Images for which a label was said to be wrong.
        budget: Bytes that all of these take, and eviction.
        thumbnails: Small images of the newest samples.
        edits: Changes to what was taught.
        drift: How well the codec fits what is taught.
        statistics: Sums over the counted samples, from which a discriminant head is computed.
        packs: Records of what was handed to another machine for a sleep.
    """

    def __init__(
        self, session: Session, constants: Mapping[str, Tensors], generation: Mapping[str, Tensors] | None = None
    ) -> None:
        """Use an open session; call `create` or `open` instead.

        Args:
            session: The open store.
            constants: Constant tensors of a store in memory, by name.
            generation: Tensors of generation 0 of a store in memory, by name.
        """
        path = session.path
        connection = session.connection
        settings = read_settings(connection, path)
        memory_bytes = int(settings["memory_bytes"])
        self.path = path
        self.settings: dict[str, Any] = settings
        self.code_bytes = int(settings["code_bytes"])
        self.generations = Generations(session, generation)
        self.classes = Classes(path, connection)
        holds_out = bool(settings.get("held_out"))  # absent in learners of early versions
        ranked = int(settings.get("ranked", 0))
        self.samples = SampleTable(path, connection, self.classes, self.code_bytes, holds_out, ranked)
        self.thumbnails = Thumbnails(path, connection, memory_bytes)
        self.drift = CodecDrift(path, connection)
        self.statistics = StatisticsTable(path, connection)
        self.constants = ConstantTensors(session, settings, constants)
        self.swap = WeightSwap(session, self.classes, self.samples, self.generations, self.statistics)
        self.session = session
        capacity = memory_bytes // (self.code_bytes + OVERHEAD_BYTES)
        self.rejections = RejectionTable(path, connection, self.code_bytes, capacity)
        self.budget = MemoryBudget(
            session, self.samples, self.thumbnails, self.rejections, memory_bytes, self.code_bytes, settings["seed"]
        )
        self._secure_delete = SecureDelete(path, connection)
        self.edits = StoreEdits(
            session=session,
            classes=self.classes,
            samples=self.samples,
            generations=self.generations,
            constants=self.constants,
            swap=self.swap,
            drift=self.drift,
            statistics=self.statistics,
            thumbnails=self.thumbnails,
            rejections=self.rejections,
            budget=self.budget,
            secure_delete=self._secure_delete,
        )
        self.packs = Packs(session, self.samples, self.generations, self.constants, self.edits)

    # -- life cycle -----------------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: Path | None,
        *,
        settings: Mapping[str, Any],
        constants: Mapping[str, Tensors],
        generation: Mapping[str, Tensors],
        statistics: Arrays | None = None,
    ) -> Store:
        """Create a store.

        Args:
            path: The folder to create; None to keep everything in memory.
            settings: JSON values that never change; the store itself uses `code_bytes`, `memory_bytes` and `seed`.
            constants: Constant tensors, by name of their file.
            generation: Tensors of generation 0, by name of their file.
            statistics: The statistics of a discriminant head; None for another head.
        """
        minimum = int(settings["code_bytes"]) + OVERHEAD_BYTES
        if int(settings["memory_bytes"]) < minimum:
            raise BadInput(f"a memory of {settings['memory_bytes']} bytes holds no sample: give at least {minimum}")
        if path is None:
            connection = fill_database(schema.connect(None, False, "OFF"), settings, {}, {}, statistics)
            return cls(Session(None, connection, "teach"), constants, generation)
        path = path.absolute()
        check_new_path(path)
        create_folder(path, settings, constants, generation, statistics)
        try:
            return cls.open(path)
        except SiestaError:  # which says that the change was not made
            shutil.rmtree(path, ignore_errors=True)
            raise

    @classmethod
    def open(cls, path: Path, access: Access = "teach", durability: str = "process") -> Store:
        """Open a store on disk.

        A store that this process has open for teaching already is closed when it is opened for teaching again, so
        that `x = open(path)` may follow `x = create(path)`.

        Args:
            path: The folder of the learner.
            access: "teach" to add and edit samples, "sleep" to change weights only, or "read".
            durability: What committed data survives, a key of `DURABILITIES`.

        Raises:
            Busy: Another process teaches it, and `access` is "teach".
        """
        if durability not in DURABILITIES:
            raise BadInput(f"there is no durability '{durability}': choose one of {', '.join(DURABILITIES)}")
        path = path.absolute()
        require_learner(path)
        session = Session.open(path, access, durability)
        try:
            with schema.database_errors(path):
                store = cls(session, constants={})
                if access == "teach":
                    store.clean_up()
        except BaseException:
            session.close()
            raise
        return store

    def dump(self) -> dict[str, Any]:
        """Return everything that a store in memory holds, for `restore`."""
        return {
            "database": self.session.connection.serialize(),
            "constants": self.constants.in_memory(),
            "generations": self.generations.in_memory(),
        }

    @classmethod
    def restore(cls, dumped: Mapping[str, Any]) -> Store:
        """Return a store in memory that equals the one that `dump` was called on."""
        connection = schema.connect(None, False, "OFF")
        connection.deserialize(dumped["database"])
        store = cls(Session(None, connection, "teach"), dumped["constants"])
        store.generations.use_in_memory(dumped["generations"])
        return store

    def close(self) -> None:
        """Close the store; another process may teach it afterwards."""
        self.session.close()

    def clean_up(self) -> None:
        """Remove what a crash left behind, unless a process sleeps: its unfinished files look the same."""
        with suppress(Busy), self.sleeping():
            self.generations.prune()
            self.constants.finish()
            if self.path is not None:
                with suppress(OSError):
                    remove_leftovers(self.path)  # of a repair
            if self._secure_delete.pending:
                with suppress(DiskRefused), self.session.errors():  # there is still no room
                    self._secure_delete.finish()

    @contextmanager
    def sleeping(self, timeout: float = 0.0) -> Iterator[None]:
        """Hold the sleeper's lock: inside, generations may be added and activated, while teaching goes on.

        Args:
            timeout: Seconds to wait for another process to release it.

        Raises:
            Busy: Another process still holds it.
        """
        with self.session.sleeping(timeout):
            yield

    def check_place(self) -> None:
        """Raise `DiskRefused` if the folder was removed, moved or replaced: what is written now would be lost."""
        self.session.check_place()

    def data_version(self) -> int:
        """Return a number that changes whenever another process has changed the store."""
        return self.session.data_version()

    # -- contents -------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.budget.samples()

    def bytes_on_disk(self) -> int:
        """Return the size of all files of the learner."""
        return folder_bytes(self.path) if self.path is not None else 0

    def row_snapshot(self, number: int | None = None, newest: int = 0) -> RowSnapshot:
        """Return the active generation, the class sums since it was made, and the statistics, as of one moment.

        Args:
            number: Number of the statistics that the caller has, if any.
            newest: The newest sample that is counted in them.
        """
        return read_row_snapshot(self._tables(), number, newest)

    def snapshot(self) -> Snapshot:
        """Return the same with the weights of the active generation."""
        return read_snapshot(self._tables())

    def _tables(self) -> Tables:
        return Tables(self.session, self.generations, self.classes, self.samples, self.statistics, self.rejections)

    # -- teaching -------------------------------------------------------------------------------------------------

    def add(
        self, samples: Sequence[NewSample], generation: int | None = None, error: float | None = None
    ) -> list[StoredSample]:
        """Store samples in one transaction, and evict others where the budget is full.

        The feature of each sample is added to the sum of its class, in order.

        Args:
            samples: Samples to store.
            generation: The generation that made the features; the active one when None.
            error: Relative error of the codec on one of the samples, where it was measured.

        Raises:
            OutdatedFeatures: Another generation is active by now; nothing was stored.
        """
        self.session.check_teaches()
        stored: list[StoredSample] = []
        with self.budget.changes(), self.session.transaction():
            if generation not in (None, self.generations.active()):
                raise OutdatedFeatures
            sums = RunningSums(self.classes)
            limit = self.budget.limit()
            counts = self.statistics.number() is not None
            for sample in samples:
                self.budget.shrink(limit - 1)
                class_id = self.classes.id_of(clean_label(sample.label))
                sample_id, held = self.samples.insert(class_id, sample)
                stored.append(StoredSample(sample_id, class_id, held))
                self.budget.count_added()
                self.rejections.withdraw(class_id, sample.codes)
                sums.add(class_id, sample.feature)
                if counts and not held:
                    self.statistics.count(sample_id, class_id, sample.feature)
            sums.write()
            if error is not None:
                self.drift.add(error)
        return stored

    def reject(self, label: str, codes: bytes) -> int:
        """Store that a label is wrong for an image with these codes, in one transaction; return the rejection's id.

        Samples are evicted, or the oldest rejection is removed, where there is no room for it.
        """
        self.session.check_teaches()
        with self.budget.changes(), self.session.transaction():
            rejection = self.rejections.insert(self.classes.named(clean_label(label)).id, codes)
            self.budget.shrink(self.budget.limit())
        return rejection

    def discard(self, ids: Ids) -> None:
        """Remove samples in one transaction; class sums keep what the samples added, as after an eviction."""
        self.session.check_teaches()
        with self.budget.changes(), self.session.transaction():
            for sample_id in ids.tolist():
                self.samples.discard(sample_id)
                self.budget.count_removed()

    def rank(self, ids: Ids) -> None:
        """Set in which order samples are evicted: of the largest class, the last of `ids` first.

        Samples that are added later have no rank; they stay as long as their class has ranked ones, and go in random
        order afterwards.

        Args:
            ids: All stored samples, the most important first. The order matters within each class only.
        """
        self.session.check_teaches()
        with self.session.transaction():
            ranked = self.samples.rank(ids)
            settings = read_settings(self.session.connection, self.path) | {"ranked": ranked}
            write_settings(self.session.connection, settings)
        self.samples.ranked = ranked
        self.settings["ranked"] = ranked

    def keep_thumbnails(self, images: Mapping[int, bytes]) -> None:
        """Keep small images of stored samples, by id; samples are evicted if both do not fit into the budget."""
        self.session.check_teaches()
        with self.budget.changes(), self.session.transaction():
            self.thumbnails.put(images)
            self.budget.shrink(self.budget.limit())

    def drop_thumbnails(self) -> None:
        """Remove all thumbnails, without leaving their bytes in a file."""
        self.session.check_teaches()
        if self.thumbnails.by_class():
            with self.session.errors():
                self._secure_delete.begin()
                with self.session.transaction():
                    self.thumbnails.clear()
                with self.session.after_commit():
                    self._secure_delete.finish()
