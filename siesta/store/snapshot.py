"""A store at one moment, even while another process swaps its weights."""

from __future__ import annotations

from dataclasses import dataclass

from siesta.errors import Damaged
from siesta.store.classes import Classes, ClassRecord, RecentSum
from siesta.store.generations import Generation, Generations
from siesta.store.samples import SampleTable
from siesta.store.session import Session
from siesta.store.statistics import StatisticsTable, StoredStatistics
from siesta.store.tensor_files import Array

__all__ = ["RowSnapshot", "Snapshot", "read_row_snapshot", "read_snapshot"]


@dataclass(frozen=True)
class RowSnapshot:
    """The rows of a store at one moment.

    Attributes:
        generation: The active generation.
        classes: All classes.
        recent: Class sums of the samples that were taught since that generation was made.
        newest: Id of the newest sample.
        statistics: Statistics from which a discriminant head is computed.
    """

    generation: Generation
    classes: list[ClassRecord]
    recent: list[RecentSum]
    newest: int
    statistics: StoredStatistics


@dataclass(frozen=True)
class Snapshot(RowSnapshot):
    """Rows and weights of a store at one moment.

    Attributes:
        weights: Tensors of the active generation, by the name of their file.
    """

    weights: dict[str, dict[str, Array]]


def read_row_snapshot(
    session: Session,
    generations: Generations,
    classes: Classes,
    samples: SampleTable,
    statistics: StatisticsTable,
    number: int | None = None,
    newest: int = 0,
) -> RowSnapshot:
    """Read all rows of a snapshot in one transaction; see `Store.row_snapshot` for `number` and `newest`."""
    with session.errors():
        session.connection.execute("BEGIN")
        try:
            records = classes.all()
            return RowSnapshot(
                generation=generations.get(generations.active()),
                classes=records,
                recent=classes.recent(record.id for record in records),
                newest=samples.newest(),
                statistics=statistics.read(number, newest),
            )
        finally:
            session.connection.execute("COMMIT")


def read_snapshot(
    session: Session, generations: Generations, classes: Classes, samples: SampleTable, statistics: StatisticsTable
) -> Snapshot:
    """Read rows and weights; start again when a swap or an edit removed the weights meanwhile."""
    rows = read_row_snapshot(session, generations, classes, samples, statistics)
    try:
        return Snapshot(**vars(rows), weights=generations.read(rows.generation))
    except Damaged:
        current = read_row_snapshot(session, generations, classes, samples, statistics).generation
        if (current.number, current.hashes) == (rows.generation.number, rows.generation.hashes):
            raise
        return read_snapshot(session, generations, classes, samples, statistics)
