"""A store at one moment, even while another process swaps its weights."""

from __future__ import annotations

from dataclasses import dataclass

from siesta.errors import Damaged
from siesta.store.classes import Classes, ClassRecord, RecentSum
from siesta.store.generations import Generation, Generations
from siesta.store.rejections import RejectionTable
from siesta.store.samples import SampleTable
from siesta.store.session import Session
from siesta.store.statistics import StatisticsTable, StoredStatistics
from siesta.store.tensor_files import Tensors

__all__ = ["RowSnapshot", "Snapshot", "Tables", "read_row_snapshot", "read_snapshot"]


@dataclass(frozen=True)
class Tables:
    """The parts of a store that a snapshot is read from."""

    session: Session
    generations: Generations
    classes: Classes
    samples: SampleTable
    statistics: StatisticsTable
    rejections: RejectionTable


@dataclass(frozen=True)
class RowSnapshot:
    """The rows of a store at one moment.

    Attributes:
        generation: The active generation.
        classes: All classes.
        recent: Class sums of the samples that were taught since that generation was made.
        newest: Id of the newest sample.
        statistics: Statistics from which a discriminant head is computed.
        rejected: The rejected class of each rejection, by its id.
    """

    generation: Generation
    classes: list[ClassRecord]
    recent: list[RecentSum]
    newest: int
    statistics: StoredStatistics
    rejected: dict[int, int]


@dataclass(frozen=True)
class Snapshot(RowSnapshot):
    """Rows and weights of a store at one moment.

    Attributes:
        weights: Tensors of the active generation, by the name of their file.
    """

    weights: dict[str, Tensors]


def read_row_snapshot(tables: Tables, number: int | None = None, newest: int = 0) -> RowSnapshot:
    """Read all rows of a snapshot in one transaction; see `Store.row_snapshot` for `number` and `newest`."""
    with tables.session.errors():
        tables.session.connection.execute("BEGIN")
        try:
            records = tables.classes.all()
            return RowSnapshot(
                generation=tables.generations.get(tables.generations.active()),
                classes=records,
                recent=tables.classes.recent(record.id for record in records),
                newest=tables.samples.newest(),
                statistics=tables.statistics.read(number, newest),
                rejected=tables.rejections.classes(),
            )
        finally:
            tables.session.connection.execute("COMMIT")


def read_snapshot(tables: Tables) -> Snapshot:
    """Read rows and weights; start again when a swap or an edit removed the weights meanwhile."""
    rows = read_row_snapshot(tables)
    try:
        return Snapshot(**vars(rows), weights=tables.generations.read(rows.generation))
    except Damaged:
        current = read_row_snapshot(tables).generation
        if (current.number, current.hashes) == (rows.generation.number, rows.generation.hashes):
            raise
        return read_snapshot(tables)
