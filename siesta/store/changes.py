"""Changing one's mind: what was taught is renamed, merged, forgotten, corrected or coded anew, in one transaction each.

The heads of all generations that are kept follow, and the audit says what was done and when. Nobody sleeps meanwhile.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput
from siesta.store import schema
from siesta.store.classes import Classes, RunningSums
from siesta.store.generations import Edit, Generations, now
from siesta.store.labels import clean_label
from siesta.store.samples import NewSample, Samples

__all__ = ["Changes"]


class Changes:
    """What can be done to a store besides adding to it."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        classes: Classes,
        samples: Samples,
        generations: Generations,
        allowed: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """Takes the parts of a store; `allowed` refuses where nothing may be changed, and says what goes wrong."""
        self._connection, self._classes, self._samples = connection, classes, samples
        self._generations, self._allowed = generations, allowed

    def rename(self, label: str, new: str) -> None:
        """Gives a class another name."""
        record, clean = self._classes.named(label), clean_label(new)
        if any(other.label == clean for other in self._classes.all()):
            raise BadInput(f"there is a class '{clean}' already: merge the two")
        with self._one({"what": "rename", "label": record.label, "to": clean}):
            self._connection.execute("UPDATE classes SET label = ? WHERE id = ?", (clean, record.id))

    def merge(self, label: str, into: str, heads: Edit) -> None:
        """Makes the samples of one class those of another; `heads` does the same to the heads."""
        gone, stays = self._classes.named(label), self._classes.named(into)
        if gone == stays:
            raise BadInput(f"'{gone.label}' is one class already: name two")
        with self._one({"what": "merge", "label": gone.label, "into": stays.label}, heads):
            self._samples.move_class(gone.id, stays.id, stays.stored)
            self._connection.execute(
                "UPDATE classes SET taught = taught + ?, stored = stored + ?,"
                " held = held + (SELECT held FROM classes WHERE id = ?) WHERE id = ?",
                (gone.taught, gone.stored, gone.id, stays.id),
            )
            sums = self._classes.recent((gone.id, stays.id))
            if sums:
                total = np.sum([some.total for some in sums], axis=0)
                self._classes.put_sum(stays.id, sum(some.count for some in sums), total)
            self._classes.drop(gone.id)

    def forget_class(self, label: str, heads: Edit) -> None:
        """Removes a class, its samples and all that was made of them; `heads` does so in the heads."""
        record = self._classes.named(label)
        with self._one({"what": "forget", "label": record.label}, heads, forgets=True):
            self._samples.remove_class(record.id)
            self._classes.drop(record.id)

    def forget_sample(self, sample_id: int, feature: npt.NDArray[np.float32], heads: Edit) -> None:
        """Removes a sample and what it added to its class; `feature` is its z, and `heads` the same for the heads."""
        with self._one({"what": "forget", "sample": sample_id}, heads, forgets=True):
            self._take_out(sample_id, feature)

    def correct(self, sample_id: int, sample: NewSample, heads: Edit) -> int:
        """Stores a sample anew, under another label, in the place of an old one; returns its new id."""
        with self._one({"what": "correct", "sample": sample_id, "label": sample.label}, heads):
            self._take_out(sample_id, sample.feature)
            class_id, sums = self._classes.id_of(clean_label(sample.label)), RunningSums(self._classes)
            new = self._samples.insert(class_id, sample)
            sums.add(class_id, sample.feature)
            sums.write()
        return new

    def _take_out(self, sample_id: int, feature: npt.NDArray[np.float32]) -> None:
        """What was taught since the last sleep loses its z; a class that has nothing left goes."""
        class_id = self._samples.remove(sample_id)
        if sample_id > self._generations.get(self._generations.used()).since:
            for recent in self._classes.recent([class_id]):
                self._classes.put_sum(class_id, recent.count - 1, recent.total - feature)
        if not any(record.taught for record in self._classes.all() if record.id == class_id):
            self._classes.drop(class_id)

    def audit(self) -> list[dict[str, Any]]:
        """What was changed after it was taught, oldest first."""
        rows = self._connection.execute("SELECT made, what FROM audit ORDER BY id").fetchall()
        return [{"made": made, **json.loads(what)} for made, what in rows]

    def note(self, what: Mapping[str, Any]) -> None:
        """A line of the audit, in the caller's transaction."""
        self._connection.execute("INSERT INTO audit (made, what) VALUES (?, ?)", (now(), json.dumps(what)))

    @contextmanager
    def _one(self, what: Mapping[str, Any], heads: Edit | None = None, forgets: bool = False) -> Iterator[None]:
        """One change of what was taught and of the heads; with `forgets`, what it deletes leaves no trace in a file."""
        with self._allowed():
            hashes = None if heads is None else self._generations.write_beside("head", heads)
            with schema.transaction(self._connection):
                yield
                if hashes is not None:
                    self._generations.vouch("head", hashes)
                self.note(what)
            self._generations.finish()
            if forgets:
                schema.leave_no_trace(self._connection)
