"""The byte budget of a store: what samples, rejections and thumbnails take, and how many samples go when it is full.

`SampleTable.evict` chooses the sample: a random one of the largest class or, where samples have been ranked
(`Store.rank`), its last one. The random number depends on the seed and the newest sample alone, so that it can be
replayed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from siesta.errors import Damaged
from siesta.rng import Purpose, generator
from siesta.store.rejections import RejectionTable
from siesta.store.samples import SampleTable
from siesta.store.session import Session
from siesta.store.thumbnails import Thumbnails

__all__ = ["OVERHEAD_BYTES", "MemoryBudget"]

OVERHEAD_BYTES = 32
"""Bytes that a sample counts in the budget besides its codes: ids, class, counters."""


class MemoryBudget:
    """Counts the stored samples of a store, and evicts samples so that they fit into its bytes.

    Attributes:
        sample_bytes: Bytes that a sample counts.
        capacity: Samples that fit when there is nothing else.
    """

    def __init__(
        self,
        session: Session,
        samples: SampleTable,
        thumbnails: Thumbnails,
        rejections: RejectionTable,
        memory_bytes: int,
        code_bytes: int,
        seed: int,
    ) -> None:
        self.sample_bytes = code_bytes + OVERHEAD_BYTES
        self.capacity = memory_bytes // self.sample_bytes
        self._rejections = rejections
        self._session = session
        self._samples = samples
        self._thumbnails = thumbnails
        self._seed = seed
        self._count = 0
        self._recount()

    def samples(self) -> int:
        """Return the number of stored samples."""
        if not (self._session.teaches and self._is_counted):  # another process may have added some
            self._recount()
        return self._count

    def bytes_used(self) -> int:
        """Return the bytes that samples, rejections and thumbnails count."""
        return self.samples() * self.sample_bytes + self._other_bytes()

    def _other_bytes(self) -> int:
        return self._rejections.count() * self.sample_bytes + self._thumbnails.total_bytes()

    def count_again(self) -> None:
        """Read the number of stored samples from the database when it is needed next."""
        self._is_counted = False

    def _recount(self) -> None:
        self._session.roll_back_leftover()
        with self._session.errors():
            (count,) = self._session.connection.execute("SELECT coalesce(sum(stored), 0) FROM classes").fetchone()
        if not isinstance(count, int) or count < 0:
            raise Damaged(
                f"{self._session.path}/store.sqlite has a wrong count of samples: `siesta repair` corrects it"
            )
        self._count = count
        self._is_counted = True

    @contextmanager
    def changes(self) -> Iterator[None]:
        """Around a transaction that changes the count; after one that fails, or is interrupted, all are counted."""
        self.samples()
        self._is_counted = False
        yield
        self._is_counted = True

    def limit(self) -> int:
        """Return the number of samples that fit beside rejections and thumbnails, at least one."""
        return max(self.capacity + -self._other_bytes() // self.sample_bytes, 1)

    def shrink(self, samples: int) -> None:
        """Evict until at most so many samples are stored, in the caller's transaction."""
        while self._count > samples:
            self._samples.evict(generator(self._seed, Purpose.EVICTION, self._samples.newest()))
            self._count -= 1

    def count_removed(self) -> None:
        """Count one stored sample less."""
        self._count -= 1

    def count_added(self) -> None:
        """Count one more stored sample."""
        self._count += 1
