"""The samples of a learner: codes by id, in slots of their classes, so that drawing one takes no scan."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from siesta.contracts import Ids, Memory
from siesta.errors import BadInput, Damaged
from siesta.store.classes import Classes
from siesta.store.holding_out import MEASURED, MOST_RUNS, REHEARSED, HoldingOut
from siesta.store.schema import database_errors, row_checksum

__all__ = ["NewSample", "SampleTable"]

_REMOVE_CLASS = (
    "DELETE FROM codes WHERE id IN (SELECT id FROM samples WHERE class_id = ?)",
    "DELETE FROM keys WHERE sample_id IN (SELECT id FROM samples WHERE class_id = ?)",
    "DELETE FROM thumbnails WHERE class_id = ?",
    "DELETE FROM samples WHERE class_id = ?",
)


@dataclass(frozen=True)
class NewSample:
    """A labelled image to be stored.

    Attributes:
        label: Label of its class.
        codes: Its codes, `code_bytes` of them.
        feature: Its z (D,), which is added to the sum of its class.
        key: A number under which it can be found again, if any; see `SampleTable.known_keys`.
    """

    label: str
    codes: bytes
    feature: npt.NDArray[np.float32]
    key: int | None = None


class SampleTable:
    """The tables `samples`, `codes` and `keys` of a store; their changes run in the caller's transaction.

    Attributes:
        ranked: The newest sample that has a rank, 0 if none has; see `rank`.
    """

    def __init__(
        self,
        path: Path | None,
        connection: sqlite3.Connection,
        classes: Classes,
        code_bytes: int,
        holds_out: bool,
        ranked: int = 0,
    ) -> None:
        """Use the tables of an open store.

        Args:
            path: The folder of the learner; None for a store in memory.
            connection: The connection to its database.
            classes: Its classes.
            code_bytes: Bytes of the codes of one sample.
            holds_out: Whether some samples of a class are held out from rehearsal.
            ranked: The newest sample that has a rank.
        """
        self.ranked = ranked
        self._path = path
        self._connection = connection
        self._classes = classes
        self._code_bytes = code_bytes
        self._holding_out = HoldingOut(connection, code_bytes) if holds_out else None

    def insert(self, class_id: int, sample: NewSample) -> tuple[int, bool]:
        """Store a sample; return its id, and whether it is held out."""
        if len(sample.codes) != self._code_bytes:
            raise ValueError(f"a sample has {self._code_bytes} bytes of codes in this store, not {len(sample.codes)}")
        execute = self._connection.execute
        slot, taught, held = execute(
            "UPDATE classes SET taught = taught + 1, stored = stored + 1 WHERE id = ?"
            " RETURNING stored - 1, taught, held",
            (class_id,),
        ).fetchone()
        side = REHEARSED
        if self._holding_out is not None:
            side = self._holding_out.side(class_id, sample.codes, taught, held)
        (sample_id,) = execute(
            "INSERT INTO samples (class_id, slot, rehearsed, held) VALUES (?, ?, 0, ?) RETURNING id",
            (class_id, slot, side),
        ).fetchone()
        if side != REHEARSED:
            execute("UPDATE classes SET held = held + 1 WHERE id = ?", (class_id,))
        execute("INSERT INTO codes VALUES (?, ?, ?)", (sample_id, row_checksum(sample_id, sample.codes), sample.codes))
        if sample.key is not None:
            execute("INSERT OR REPLACE INTO keys VALUES (?, ?)", (sample.key, sample_id))
        return int(sample_id), side != REHEARSED

    def evict(self, rng: np.random.Generator) -> None:
        """Remove a sample of the largest class: the last in rank if there is one, else a random one.

        The last sample of the class moves into the free slot.
        """
        execute = self._connection.execute
        class_id, stored = execute("SELECT id, stored FROM classes ORDER BY stored DESC, id LIMIT 1").fetchone()
        last = self._last_ranked_slot(class_id)
        self._free(class_id, int(rng.integers(stored)) if last is None else last, stored)

    def discard(self, sample_id: int) -> None:
        """Remove a stored sample as an eviction does: it stays among the taught ones of its class."""
        row = self._connection.execute(
            "SELECT class_id, slot, stored FROM samples JOIN classes ON classes.id = class_id WHERE samples.id = ?",
            (sample_id,),
        ).fetchone()
        if row is None:
            raise self._lost_sample()
        self._free(*row)

    def _free(self, class_id: int, slot: int, stored: int) -> None:
        """Remove the sample in a slot of a class; the last of its `stored` samples moves there."""
        execute = self._connection.execute
        row = execute(
            "DELETE FROM samples WHERE class_id = ? AND slot = ? RETURNING id, held > 0", (class_id, slot)
        ).fetchone()
        if row is None:
            raise self._lost_sample()
        evicted, held = row
        execute("UPDATE samples SET slot = ? WHERE class_id = ? AND slot = ?", (slot, class_id, stored - 1))
        execute("DELETE FROM codes WHERE id = ?", (evicted,))
        execute("DELETE FROM thumbnails WHERE id = ?", (evicted,))
        execute("UPDATE classes SET stored = stored - 1, held = held - ? WHERE id = ?", (held, class_id))

    def _last_ranked_slot(self, class_id: int) -> int | None:
        """Return the slot of the last sample of a class in rank; None where no sample of it has a rank.

        Ranked samples keep the lowest slots: only later ones move, into slots that eviction has freed behind them. (An
        edit may move one sample out of its rank.)
        """
        if not self.ranked:
            return None
        row = self._connection.execute(
            "SELECT slot FROM samples WHERE class_id = ? AND id <= ? ORDER BY slot DESC LIMIT 1",
            (class_id, self.ranked),
        ).fetchone()
        return None if row is None else int(row[0])

    def rank(self, ids: Ids) -> int:
        """Give the samples of each class slots in the order of `ids`, which must be all stored samples.

        Returns:
            The newest sample that was ever stored: samples up to it have a rank.
        """
        classes = dict(self._connection.execute("SELECT id, class_id FROM samples").fetchall())
        if len(ids) != len(classes) or set(ids.tolist()) != set(classes):
            raise ValueError(f"a rank needs each of the {len(classes)} stored samples once, not {len(ids)} ids")
        places: Counter[int] = Counter()
        slots = []
        for sample_id in ids.tolist():
            slots.append((places[classes[sample_id]], sample_id))
            places[classes[sample_id]] += 1
        self._connection.execute("UPDATE samples SET slot = -1 - slot")  # slots are unique within a class
        self._connection.executemany("UPDATE samples SET slot = ? WHERE id = ?", slots)
        return self.newest()

    def remove(self, sample_id: int) -> int:
        """Remove a sample as if it had never been taught; return its class id."""
        execute = self._connection.execute
        class_id, slot, held = execute(
            "DELETE FROM samples WHERE id = ? RETURNING class_id, slot, held > 0", (sample_id,)
        ).fetchone()
        (last,) = execute(
            "UPDATE classes SET taught = taught - 1, stored = stored - 1, held = held - ? WHERE id = ?"
            " RETURNING stored",
            (held, class_id),
        ).fetchone()
        execute("UPDATE samples SET slot = ? WHERE class_id = ? AND slot = ?", (slot, class_id, last))
        execute("DELETE FROM codes WHERE id = ?", (sample_id,))
        execute("DELETE FROM keys WHERE sample_id = ?", (sample_id,))
        execute("DELETE FROM thumbnails WHERE id = ?", (sample_id,))
        return int(class_id)

    def remove_class(self, class_id: int) -> None:
        """Remove all samples of a class."""
        for statement in _REMOVE_CLASS:
            self._connection.execute(statement, (class_id,))

    def move_class(self, class_id: int, into: int, first_slot: int) -> None:
        """Give the samples of one class to another, in slots from `first_slot` on."""
        execute = self._connection.execute
        execute("UPDATE samples SET class_id = ?, slot = slot + ? WHERE class_id = ?", (into, first_slot, class_id))
        execute("UPDATE thumbnails SET class_id = ? WHERE class_id = ?", (into, class_id))

    def limit_held_out(self, class_id: int) -> None:
        """Let sleeps rehearse the newest held-out samples of a class of which too many are measured."""
        execute = self._connection.execute
        execute(
            "UPDATE samples SET held = 0 WHERE class_id = :id AND held AND id >="
            " (SELECT id FROM samples WHERE class_id = :id AND held = :measured ORDER BY id LIMIT 1 OFFSET :most)",
            {"id": class_id, "measured": MEASURED, "most": MOST_RUNS},
        )
        execute(
            "UPDATE classes SET held = (SELECT count(*) FROM samples WHERE class_id = :id AND held) WHERE id = :id",
            {"id": class_id},
        )

    def recode(self, ids: Ids, codes: npt.NDArray[np.uint8]) -> None:
        """Replace the codes of samples, given their ids (B,) and codes (B, code_bytes)."""
        rows = [
            (row_checksum(sample_id, data), data, sample_id)
            for sample_id, data in zip(ids.tolist(), map(bytes, codes), strict=True)
        ]
        self._connection.executemany("UPDATE codes SET checksum = ?, codes = ? WHERE id = ?", rows)

    def count_rehearsed(self, rehearsed: Ids) -> None:
        """Add to the rehearsal counts of samples; ids may repeat, and those that are not stored are ignored."""
        ids, times = np.unique(rehearsed, return_counts=True)
        self._connection.executemany(
            "UPDATE samples SET rehearsed = rehearsed + ? WHERE id = ?", zip(times.tolist(), ids.tolist(), strict=True)
        )

    def after(self, since: int, limit: int) -> tuple[Ids, npt.NDArray[np.int32]]:
        """Return the oldest samples that are newer than `since`, at most `limit`: ids (B,) and class ids (B,)."""
        rows = self._connection.execute(
            "SELECT id, class_id FROM samples WHERE id > ? ORDER BY id LIMIT ?", (since, limit)
        ).fetchall()
        ids, classes = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        return ids, classes.astype(np.int32)

    def get(self, ids: Ids) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint8]]:
        """Return the codes of samples.

        Args:
            ids: Ids (B,) in any order; they may repeat.

        Returns:
            Which of them are still stored (B,), and their codes (stored, code_bytes) in the same order.
        """
        with database_errors(self._path):
            rows = self._connection.execute(
                "SELECT id, checksum, codes FROM codes WHERE id IN (SELECT value FROM json_each(?))",
                (json.dumps(ids.tolist()),),
            ).fetchall()
        for sample_id, checksum, codes in rows:
            if checksum != row_checksum(sample_id, codes):
                raise Damaged(f"sample {sample_id} of {self._path} is damaged: `siesta repair` keeps the rest")
        by_id = {row[0]: row[2] for row in rows}
        present = np.array([sample_id in by_id for sample_id in ids.tolist()], dtype=bool)
        data = b"".join(by_id[sample_id] for sample_id in ids[present].tolist())
        return present, np.frombuffer(data, dtype=np.uint8).reshape(-1, self._code_bytes)

    def draw(
        self, count: int, rng: np.random.Generator, class_ids: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
    ) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Return distinct samples drawn uniformly, in random order. Deterministic given `rng` and the stored samples.

        Args:
            count: Number of samples; all of them where fewer are stored.
            rng: Draws slots of classes, so that no table is scanned.
            class_ids: All classes, oldest first, (K,).
            sizes: The number of stored samples of each, (K,). A caller that draws often keeps them.

        Returns:
            Ids (B,) and the positions of their classes in `class_ids` (B,).
        """
        ends = np.cumsum(sizes)
        total = int(sizes.sum())
        places = rng.choice(total, min(count, total), replace=False) if total else np.zeros(0, dtype=np.int64)
        owners = np.searchsorted(ends, places, side="right")
        slots = places - (ends - sizes)[owners]
        ids = [self._at(*place) for place in zip(class_ids[owners].tolist(), slots.tolist(), strict=True)]
        return np.array(ids, dtype=np.int64), owners

    def _at(self, class_id: int, slot: int) -> int:
        """Return the id of the sample in a slot of a class."""
        with database_errors(self._path):
            row = self._connection.execute(
                "SELECT id FROM samples WHERE class_id = ? AND slot = ?", (class_id, slot)
            ).fetchone()
        if row is None:
            raise self._lost_sample()
        return int(row[0])

    def _lost_sample(self) -> Damaged:
        return Damaged(f"{self._path}/store.sqlite has lost a sample: `siesta repair` keeps the rest")

    def memory(self, newest: int | None = None) -> Memory:
        """Return what a policy may see of the samples that are not held out; scans the small table only.

        Args:
            newest: Id of the newest sample to include; all when None.
        """
        with database_errors(self._path):
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
        """Return the held-out samples up to the id `newest` that are measured: ids (B,) and class ids (B,)."""
        with database_errors(self._path):
            rows = self._connection.execute(
                "SELECT id, class_id FROM samples WHERE held = ? AND id <= ? ORDER BY id", (MEASURED, newest)
            ).fetchall()
        ids, classes = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        return ids, classes.astype(np.int32)

    def are_held(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Return which of these stored samples (B,) are held out."""
        query = "SELECT id FROM samples WHERE held AND id IN (SELECT value FROM json_each(?))"
        held = [row[0] for row in self._connection.execute(query, (json.dumps(ids.tolist()),))]
        return np.isin(ids, held)

    def counted(self, class_id: int | None = None) -> Ids:
        """Return the stored samples that the statistics of the head count, oldest first; of one class if given."""
        with database_errors(self._path):
            (column,) = self._connection.execute(
                "SELECT group_concat(id) FROM samples WHERE counted AND class_id = coalesce(?, class_id)", (class_id,)
            ).fetchone()
        return np.sort(np.fromstring(column or "", dtype=np.int64, sep=","))

    def counted_with_classes(self, newest: int) -> tuple[Ids, npt.NDArray[np.int32]]:
        """Return the stored samples up to the id `newest` that the statistics count: ids (B,) and class ids (B,)."""
        with database_errors(self._path):
            rows = self._connection.execute(
                "SELECT id, class_id FROM samples WHERE counted AND id <= ? ORDER BY id", (newest,)
            ).fetchall()
        ids, classes = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        return ids, classes.astype(np.int32)

    def count_held_out(self) -> int:
        """Return the number of held-out samples."""
        with database_errors(self._path):
            (count,) = self._connection.execute("SELECT coalesce(sum(held), 0) FROM classes").fetchone()
        return int(count)

    def known_keys(self, keys: Iterable[int]) -> dict[int, int]:
        """Return the keys under which a sample was taught before, with its id; it may have been evicted since."""
        with database_errors(self._path):
            rows = self._connection.execute(
                "SELECT key, sample_id FROM keys WHERE key IN (SELECT value FROM json_each(?))",
                (json.dumps(list(keys)),),
            )
            return dict(rows.fetchall())

    def class_of(self, sample_id: int) -> int:
        """Return the class id of a stored sample."""
        row = None
        if sample_id <= self.newest():  # a larger one may exceed the integers of SQLite
            with database_errors(self._path):
                row = self._connection.execute("SELECT class_id FROM samples WHERE id = ?", (sample_id,)).fetchone()
        if row is None:
            raise BadInput(f"there is no sample {sample_id}: it was evicted or forgotten, or there never was one")
        return int(row[0])

    def classes_of(self, ids: Ids) -> npt.NDArray[np.int32]:
        """Return the class ids (B,) of stored samples."""
        query = "SELECT id, class_id FROM samples WHERE id IN (SELECT value FROM json_each(?))"
        with database_errors(self._path):
            classes = dict(self._connection.execute(query, (json.dumps(ids.tolist()),)).fetchall())
        return np.array([classes[sample_id] for sample_id in ids.tolist()], dtype=np.int32)

    def key_of(self, sample_id: int) -> int | None:
        """Return the key under which a sample was taught, if any."""
        row = self._connection.execute("SELECT key FROM keys WHERE sample_id = ?", (sample_id,)).fetchone()
        return None if row is None else int(row[0])

    def ids(self) -> Ids:
        """Return the ids of all stored samples, oldest first, those of held-out ones included."""
        with database_errors(self._path):
            (column,) = self._connection.execute("SELECT group_concat(id) FROM samples").fetchone()
        return np.sort(np.fromstring(column or "", dtype=np.int64, sep=","))

    def newest(self) -> int:
        """Return the largest id that was ever given."""
        row = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'samples'").fetchone()
        return 0 if row is None else int(row[0])
