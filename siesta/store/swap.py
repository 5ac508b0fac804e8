"""The swap of weights: a generation becomes active together with the samples learned after it was made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from siesta.contracts import Ids
from siesta.errors import SiestaError
from siesta.store.classes import Classes
from siesta.store.generations import Generations
from siesta.store.samples import SampleTable
from siesta.store.session import Session
from siesta.store.statistics import Arrays, StatisticsTable
from siesta.store.tensor_files import Tensors

__all__ = ["ClassSums", "WeightSwap"]

_BATCH_SIZE = 256  # samples that are embedded together before the transaction
_LEFT_FOR_TRANSACTION = 8  # at most so many samples are embedded while learning is blocked


class ClassSums(Protocol):
    """Sums of z by class over samples, as the top of one generation sees them."""

    def add(
        self, ids: Ids, classes: npt.NDArray[np.int32], codes: npt.NDArray[np.uint8], held: npt.NDArray[np.bool_]
    ) -> None:
        """Add samples: their ids (B,), class ids (B,), codes (B, code_bytes), and whether they are held out (B,)."""

    def totals(self, taught: Mapping[int, int]) -> Iterable[tuple[int, int, npt.NDArray[np.float64]]]:
        """Return class id, count and sum (D,), given the number of samples of each class that were ever taught."""

    def statistics(self) -> tuple[Arrays, Ids] | None:
        """Return the new statistics of the head and the ids of the samples counted in them; None if it has none."""


class WeightSwap:
    """Activates generations of a store."""

    def __init__(
        self,
        session: Session,
        classes: Classes,
        samples: SampleTable,
        generations: Generations,
        statistics: StatisticsTable,
    ) -> None:
        self._session = session
        self._statistics = statistics
        self._classes = classes
        self._samples = samples
        self._generations = generations

    def activate(self, number: int, sums: ClassSums, rehearsed: Ids | None = None) -> None:
        """Activate a generation in one transaction, with the sums of what was taught since it was made.

        Nearly all of these samples are embedded before the transaction begins, so that learning hardly waits.

        Args:
            number: A generation whose weights are kept.
            sums: Empty sums, made with the top of that generation.
            rehearsed: Ids of all samples that were rehearsed to make it, repeats included.
        """
        self._session.check_sleeping()
        with self._session.errors():
            with self._swapping(number, self._generations.get(number).since, sums):
                if rehearsed is not None:
                    self._samples.count_rehearsed(rehearsed)
            self._prune()

    def add(
        self, tensors: Mapping[str, Tensors], since: int, report: Mapping[str, Any], sums: ClassSums, rehearsed: Ids
    ) -> int:
        """Keep new weights and activate them, both in one transaction; return the number of their generation.

        Args:
            tensors: Tensors of the new generation, by name of their file.
            since: Id of the newest sample that its head includes.
            report: JSON values to keep about the sleep.
            sums: Empty sums, made with the new top.
            rehearsed: Ids of all samples that were rehearsed, repeats included.
        """
        with self._session.errors():
            number, hashes = self._generations.write(tensors)
            with self._swapping(number, since, sums):
                self._generations.insert(number, hashes, since, report)
                self._samples.count_rehearsed(rehearsed)
            self._prune()
        return number

    @contextmanager
    def _swapping(self, number: int, since: int, sums: ClassSums) -> Iterator[None]:
        """Activate a generation together with what the block writes, in one transaction."""
        newest = self._embed(sums, since, leave=_LEFT_FOR_TRANSACTION)
        with self._session.transaction():
            yield
            self.replace_sums(sums, newest)
            self._generations.activate(number)

    def _prune(self) -> None:
        with suppress(OSError, SiestaError):  # the next process that learns does it
            self._generations.prune()

    def replace_sums(self, sums: ClassSums, since: int) -> None:
        """Replace the sums of all classes and the statistics of the head, in the caller's transaction.

        Args:
            sums: The new sums without the samples after `since`, which are added.
            since: Id of a sample.
        """
        self._embed(sums, since, leave=0)
        self._classes.clear_sums()
        for class_id, count, total in sums.totals({record.id: record.taught for record in self._classes.all()}):
            self._classes.put_sum(class_id, count, total)
        statistics = sums.statistics()
        if statistics is not None:
            self._statistics.replace(*statistics)
        elif self._statistics.number() is not None:
            self._statistics.clear()

    def _embed(self, sums: ClassSums, since: int, leave: int) -> int:
        """Add the samples after `since` to the sums until at most `leave` are left; return the newest added."""
        while True:
            ids, classes = self._samples.after(since, _BATCH_SIZE)
            if len(ids) <= leave:
                return since
            present, codes = self._samples.get(ids)
            sums.add(ids[present], classes[present], codes, self._samples.are_held(ids[present]))
            since = int(ids[-1])
