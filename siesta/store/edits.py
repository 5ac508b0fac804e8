"""Edits of the stored samples and classes: rename, merge, forget, correct, and another codec, in one transaction each.

The heads of all generations that are kept are edited too, and every edit is recorded. No process sleeps meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.contracts import Ids
from siesta.errors import BadInput, Damaged
from siesta.store.classes import Classes, RunningSums
from siesta.store.constants import ConstantTensors
from siesta.store.drift import CodecDrift
from siesta.store.eviction import MemoryBudget
from siesta.store.generations import Generations, HeadEdit, now
from siesta.store.labels import clean_label
from siesta.store.rejections import RejectionTable
from siesta.store.samples import NewSample, SampleTable
from siesta.store.secure_delete import SecureDelete
from siesta.store.session import Session
from siesta.store.statistics import Arrays, StatisticsTable
from siesta.store.swap import ClassSums, WeightSwap
from siesta.store.tensor_files import Tensors
from siesta.store.thumbnails import Thumbnails

__all__ = ["StoreEdits"]


class StoreEdits:
    """Changes the contents of a store other than by adding to them; requires `Store.sleeping`."""

    def __init__(
        self,
        *,
        session: Session,
        classes: Classes,
        samples: SampleTable,
        generations: Generations,
        constants: ConstantTensors,
        swap: WeightSwap,
        drift: CodecDrift,
        statistics: StatisticsTable,
        thumbnails: Thumbnails,
        rejections: RejectionTable,
        budget: MemoryBudget,
        secure_delete: SecureDelete,
    ) -> None:
        self._session = session
        self._classes = classes
        self._samples = samples
        self._generations = generations
        self._constants = constants
        self._swap = swap
        self._drift = drift
        self._statistics = statistics
        self._thumbnails = thumbnails
        self._rejections = rejections
        self._budget = budget
        self._secure_delete = secure_delete

    def rename(self, label: str, new: str) -> None:
        """Give a class another label."""
        record = self._classes.named(label)
        new_label = clean_label(new)
        if record.label == new_label:
            raise BadInput(f"class '{new_label}' has this label already: give another one")
        if any(other.label == new_label for other in self._classes.all()):
            raise BadInput(f"there is a class '{new_label}' already: merge the two")
        with self._edit({"what": "rename", "label": record.label, "to": new_label}):
            self._classes.rename(record.id, new_label)

    def merge(self, label: str, into: str, edit_head: HeadEdit, statistics: Arrays | None = None) -> None:
        """Give the samples of one class to another one and remove the first.

        Args:
            label: The class to remove.
            into: The class that gets its samples.
            edit_head: Merges the two in a head.
            statistics: Statistics of the head after the merge; None for a head without statistics.
        """
        source = self._classes.named(label)
        target = self._classes.named(into)
        if source == target:
            raise BadInput(f"class '{source.label}' cannot be merged with itself: name two classes")
        entry = {"what": "merge", "label": source.label, "into": target.label, "classes": [source.id, target.id]}
        with self._edit(entry, edit_head, statistics=statistics):
            self._samples.move_class(source.id, target.id, target.stored)
            self._rejections.move_class(source.id, target.id)
            self._classes.add_counts(target.id, source.taught, source.stored)
            self._samples.limit_held_out(target.id)
            sums = self._classes.recent((source.id, target.id))
            if sums:
                total = np.sum([recent.total for recent in sums], axis=0)
                self._classes.put_sum(target.id, sum(recent.count for recent in sums), total)
            self._classes.drop(source.id)

    def forget_class(self, label: str, edit_head: HeadEdit, statistics: Arrays | None = None) -> None:
        """Remove a class and its samples.

        Args:
            label: The class.
            edit_head: Removes it from a head.
            statistics: Statistics of the head without the class; None for a head without statistics.
        """
        record = self._classes.named(label)
        with self._edit(
            {"what": "forget", "label": record.label, "class": record.id},
            edit_head,
            secure=True,
            statistics=statistics,
        ):
            self._samples.remove_class(record.id)
            self._classes.drop(record.id)

    def forget_sample(
        self,
        sample_id: int,
        feature: npt.NDArray[np.float32],
        edit_head: HeadEdit,
        statistics: Arrays | None = None,
    ) -> None:
        """Remove a sample as if it had never been taught.

        Args:
            sample_id: The sample.
            feature: Its z (D,) with the active weights.
            edit_head: Removes what the sample added to a head.
            statistics: Statistics of the head without the sample; None for a head without statistics.
        """
        edited = {"what": "forget", "sample": sample_id}
        with self._edit(edited, edit_head, secure=True, statistics=statistics) as entry:
            entry["class"] = self._remove(sample_id, feature)

    def forget_rejection(self, rejection: int) -> None:
        """Remove a rejection."""
        with self._edit({"what": "forget_rejection", "rejection": rejection}, secure=True):
            self._rejections.remove(rejection)

    def correct(self, sample_id: int, sample: NewSample, edit_head: HeadEdit, statistics: Arrays | None = None) -> int:
        """Replace a sample by the same one under another label, with its thumbnail; return its new id.

        Args:
            sample_id: The sample to replace.
            sample: The one to replace it with.
            edit_head: Removes what the old sample added to a head.
            statistics: Statistics of the head without the old sample, in which the new one is counted; None for a head
                without statistics.
        """
        edited = {"what": "correct", "sample": sample_id, "label": sample.label}
        with self._edit(edited, edit_head, statistics=statistics) as entry:
            thumbnail = self._thumbnails.get(sample_id)
            entry["class"] = self._remove(sample_id, sample.feature)
            class_id = self._classes.id_of(clean_label(sample.label))
            self._rejections.withdraw(class_id, sample.codes)
            new_id, held = self._samples.insert(class_id, sample)
            entry["new"] = new_id
            if statistics is not None and not held:
                self._statistics.count(new_id, class_id, sample.feature)
            sums = RunningSums(self._classes)
            sums.add(class_id, sample.feature)
            sums.write()
            if thumbnail is not None:
                self._thumbnails.put({new_id: thumbnail})
        return new_id

    def _remove(self, sample_id: int, feature: npt.NDArray[np.float32]) -> int:
        """Remove a sample and subtract its z from the sum of its class; return the id of the class.

        A class of which nothing is left is removed.
        """
        class_id = self._samples.remove(sample_id)
        if sample_id > self._generations.get(self._generations.active()).since:
            for recent in self._classes.recent([class_id]):
                self._classes.put_sum(class_id, recent.count - 1, recent.total - feature)
        if not any(record.taught for record in self._classes.all() if record.id == class_id):
            self._classes.drop(class_id)
        return class_id

    def replace_codec(
        self,
        tensors: Tensors,
        error: float,
        codes: Iterable[tuple[Ids, npt.NDArray[np.uint8]]],
        sums: ClassSums,
        entry: Mapping[str, Any],
        rejected: Mapping[int, bytes] = MappingProxyType({}),
    ) -> None:
        """Replace the codec, the codes of every sample and the sums of every class, in one transaction.

        Args:
            tensors: The tensors of the codec.
            error: Its relative error on the images that it was fitted on.
            codes: Batches of ids (B,) and codes (B, code_bytes); read inside the transaction.
            sums: Empty sums, made with the new codec and the top in use.
            entry: JSON values to record.
            rejected: Codes of the rejections, by id.
        """
        with self._allowed():
            hashes = self._constants.write_next_codec(tensors)
            with self._session.transaction(synced=True):
                for ids, batch in codes:
                    self._samples.recode(ids, batch)
                self._rejections.recode(rejected)
                self._swap.replace_sums(sums, self._generations.get(self._generations.active()).since)
                self._constants.record_codec(hashes, error)
                self._drift.clear()
                self.record(entry)
            with self._session.after_commit():
                self._constants.use_codec(tensors, hashes, error)

    def audit(self) -> list[dict[str, Any]]:
        """Return the recorded edits, oldest first."""
        return [entry for _, entry in self.numbered_audit()]

    def numbered_audit(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the recorded edits with their numbers, oldest first; a number is missing where one was lost."""
        with self._session.errors():
            rows = self._session.connection.execute("SELECT id, made, what FROM audit ORDER BY id").fetchall()
        try:
            return [(number, {"made": made, **json.loads(what)}) for number, made, what in rows]
        except (TypeError, ValueError) as error:
            raise Damaged(f"the record of an edit is damaged ({error}): `siesta repair` keeps the others") from error

    def record(self, entry: Mapping[str, Any]) -> None:
        """Record an edit, in the caller's transaction."""
        self._session.connection.execute("INSERT INTO audit (made, what) VALUES (?, ?)", (now(), json.dumps(entry)))

    @contextmanager
    def _edit(
        self,
        entry: dict[str, Any],
        edit_head: HeadEdit | None = None,
        secure: bool = False,
        statistics: Arrays | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Run the block, the edit of all heads and its record in one transaction.

        Args:
            entry: JSON values to record; they are yielded, and the block may add to them.
            edit_head: Edits the head of a generation; heads stay as they are when None.
            secure: Leave no bytes of deleted rows in any file.
            statistics: New statistics of the head; they stay as they are when None.
        """
        with self._allowed():
            if secure:
                self._secure_delete.begin()
            hashes = None if edit_head is None else self._generations.write_next("head", edit_head)
            with self._session.transaction(synced=True):
                if statistics is not None:
                    self._statistics.edit(statistics)
                yield entry
                if hashes is not None:
                    self._generations.record_hashes("head", hashes)
                self.record(entry)
            with self._session.after_commit(entry.get("new")):
                self._generations.finish()
                if secure:
                    self._secure_delete.finish()

    @contextmanager
    def _allowed(self) -> Iterator[None]:
        """Refuse to edit where no process may, and count the samples anew afterwards."""
        self._session.check_teaches()
        self._session.check_sleeping()
        try:
            with self._session.errors():
                yield
        finally:
            self._budget.count_again()
