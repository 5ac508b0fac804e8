"""Samples of a learner: codes under ids, in slots of their classes, so that a random one is found without a scan."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from siesta.contracts import Ids, Memory
from siesta.errors import BadInput, Damaged
from siesta.store.classes import Classes
from siesta.store.schema import database_errors, row_checksum

__all__ = ["NewSample", "Samples"]

_EVICTION = 1  # purpose number of the random stream that picks who goes
_HELD_OUT, _HELD_OUT_FROM, _HELD_OUT_EVERY = 5, 20, 4  # of a class: at most five, the 20th, the 24th, ...
_FORGET = (
    "DELETE FROM codes WHERE id IN (SELECT id FROM samples WHERE class_id = ?)",
    "DELETE FROM keys WHERE sample_id IN (SELECT id FROM samples WHERE class_id = ?)",
    "DELETE FROM thumbnails WHERE class_id = ?",
    "DELETE FROM samples WHERE class_id = ?",
)


@dataclass(frozen=True)
class NewSample:
    """What is stored of one labelled picture: its codes, its z (for the class's sum), and optionally a key."""

    label: str
    codes: bytes
    feature: npt.NDArray[np.float32]
    key: int | None = None


class Samples:
    """The tables `samples`, `codes` and `keys` of a store; what changes them runs in the caller's transaction."""

    def __init__(
        self, path: Path | None, connection: sqlite3.Connection, classes: Classes, code_bytes: int, holds_out: bool
    ) -> None:
        """Takes the parts of a store.

        Args:
            path: Its folder; None in RAM.
            connection: To its database.
            classes: That samples belong to.
            code_bytes: Of one sample.
            holds_out: Whether some of a class are never rehearsed.
        """
        self._path, self._connection, self._classes = path, connection, classes
        self._code_bytes, self._holds_out = code_bytes, holds_out

    def insert(self, class_id: int, sample: NewSample) -> int:
        """Stores a sample; returns its id."""
        if len(sample.codes) != self._code_bytes:
            raise ValueError(f"codes of {len(sample.codes)} bytes in a store of {self._code_bytes}")
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

    def evict(self, seed: int) -> None:
        """Drops a random sample of the class with the most; the class's last slot fills the gap."""
        execute = self._connection.execute
        class_id, stored = execute("SELECT id, stored FROM classes ORDER BY stored DESC, id LIMIT 1").fetchone()
        slot = int(np.random.default_rng((seed, _EVICTION, self.newest())).integers(stored))
        row = execute(
            "DELETE FROM samples WHERE class_id = ? AND slot = ? RETURNING id, held", (class_id, slot)
        ).fetchone()
        if row is None:
            raise self._lost_a_sample()
        gone, held = row
        execute("UPDATE samples SET slot = ? WHERE class_id = ? AND slot = ?", (slot, class_id, stored - 1))
        execute("DELETE FROM codes WHERE id = ?", (gone,))
        execute("DELETE FROM thumbnails WHERE id = ?", (gone,))
        execute("UPDATE classes SET stored = stored - 1, held = held - ? WHERE id = ?", (held, class_id))

    def remove(self, sample_id: int) -> int:
        """Takes a sample out as if it had never been taught; returns its class id."""
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
        execute("DELETE FROM thumbnails WHERE id = ?", (sample_id,))
        return int(class_id)

    def remove_class(self, class_id: int) -> None:
        """Takes all samples of a class out."""
        for statement in _FORGET:
            self._connection.execute(statement, (class_id,))

    def move_class(self, class_id: int, into: int, first: int) -> None:
        """Makes the samples of one class those of another, in slots from `first` on."""
        execute = self._connection.execute
        execute("UPDATE samples SET class_id = ?, slot = slot + ? WHERE class_id = ?", (into, first, class_id))
        execute("UPDATE thumbnails SET class_id = ? WHERE class_id = ?", (into, class_id))

    def hold_no_more_than_allowed(self, class_id: int) -> None:
        """Lets the newest of too many held-out samples of a class be rehearsed."""
        execute = self._connection.execute
        execute(
            "UPDATE samples SET held = 0 WHERE class_id = :id AND held AND id NOT IN"
            " (SELECT id FROM samples WHERE class_id = :id AND held ORDER BY id LIMIT :most)",
            {"id": class_id, "most": _HELD_OUT},
        )
        execute(
            "UPDATE classes SET held = (SELECT count(*) FROM samples WHERE class_id = :id AND held) WHERE id = :id",
            {"id": class_id},
        )

    def recode(self, ids: Ids, codes: npt.NDArray[np.uint8]) -> None:
        """Gives samples (B,) other codes (B, code_bytes)."""
        rows = [
            (row_checksum(sample_id, data), data, sample_id)
            for sample_id, data in zip(ids.tolist(), map(bytes, codes), strict=True)
        ]
        self._connection.executemany("UPDATE codes SET checksum = ?, codes = ? WHERE id = ?", rows)

    def count_rehearsed(self, rehearsed: Ids) -> None:
        """Counts rehearsals, repeats included; ids that are gone do not matter."""
        ids, times = np.unique(rehearsed, return_counts=True)
        self._connection.executemany(
            "UPDATE samples SET rehearsed = rehearsed + ? WHERE id = ?", zip(times.tolist(), ids.tolist(), strict=True)
        )

    def after(self, since: int, most: int) -> tuple[Ids, npt.NDArray[np.int32]]:
        """The first samples that are newer than one: ids (B,) and class ids (B,)."""
        rows = self._connection.execute(
            "SELECT id, class_id FROM samples WHERE id > ? ORDER BY id LIMIT ?", (since, most)
        ).fetchall()
        ids, classes = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        return ids, classes.astype(np.int32)

    def get(self, ids: Ids) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint8]]:
        """Codes of samples by id.

        Args:
            ids: Wanted samples, (B,), in any order, repeats allowed.

        Returns:
            Which of them are still there, (B,), and the codes of those, (found, code_bytes), in the order asked for.
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

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Ids, npt.NDArray[np.int32]]:
        """Distinct samples, all alike likely, in random order; what is drawn hangs on `rng` and the contents alone.

        Args:
            count: How many; all of them, where fewer are stored.
            rng: Draws places among the classes' slots, so that nothing is scanned and no list of ids kept.

        Returns:
            Ids (B,) and class ids (B,).
        """
        classes = self._classes.all()
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
        with database_errors(self._path):
            row = self._connection.execute(
                "SELECT id FROM samples WHERE class_id = ? AND slot = ?", (class_id, slot)
            ).fetchone()
        if row is None:
            raise self._lost_a_sample()
        return int(row[0])

    def _lost_a_sample(self) -> Damaged:
        return Damaged(f"{self._path}/store.sqlite has lost a sample: `siesta repair` keeps the rest")

    def memory(self, newest: int | None = None) -> Memory:
        """The narrow view of what is stored and not held out, for a policy: a scan of the small table only.

        Args:
            newest: Samples that came after it are left out.
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
        """Samples up to `newest` that no sleep rehearses, to be asked about after it: ids (B,) and class ids (B,)."""
        with database_errors(self._path):
            rows = self._connection.execute(
                "SELECT id, class_id FROM samples WHERE held AND id <= ? ORDER BY id", (newest,)
            ).fetchall()
        ids, classes = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        return ids, classes.astype(np.int32)

    def known_keys(self, keys: Iterable[int]) -> dict[int, int]:
        """Those of the keys under which something was taught already, with the sample's id."""
        with database_errors(self._path):
            rows = self._connection.execute(
                "SELECT key, sample_id FROM keys WHERE key IN (SELECT value FROM json_each(?))",
                (json.dumps(list(keys)),),
            )
            return dict(rows.fetchall())

    def class_of(self, sample_id: int) -> int:
        """The class id of a stored sample."""
        row = None
        if sample_id <= self.newest():  # beyond may be more than SQLite's numbers
            with database_errors(self._path):
                row = self._connection.execute("SELECT class_id FROM samples WHERE id = ?", (sample_id,)).fetchone()
        if row is None:
            raise BadInput(f"there is no sample {sample_id}: it was evicted or forgotten, or there never was one")
        return int(row[0])

    def key_of(self, sample_id: int) -> int | None:
        """The key under which a sample was taught, if any."""
        row = self._connection.execute("SELECT key FROM keys WHERE sample_id = ?", (sample_id,)).fetchone()
        return None if row is None else int(row[0])

    def ids(self) -> Ids:
        """All stored samples, oldest first, those that are held out included."""
        with database_errors(self._path):
            (column,) = self._connection.execute("SELECT group_concat(id) FROM samples").fetchone()
        return np.sort(np.fromstring(column or "", dtype=np.int64, sep=","))

    def newest(self) -> int:
        """The newest id that was ever given."""
        row = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'samples'").fetchone()
        return 0 if row is None else int(row[0])
