"""Which new samples are held out: whole runs of near-duplicates, so that none of them is rehearsed.

Images often come in bursts that show one object from nearly the same side. If some of a burst were rehearsed, the
others would be recognised too easily, and an accuracy measured on them would be too good. So near-duplicates that
arrive one after the other are on the same side: all of them are rehearsed, or none.
"""

from __future__ import annotations

import math
import sqlite3

import numpy as np
import numpy.typing as npt

__all__ = ["BESIDE", "MEASURED", "MOST_RUNS", "REHEARSED", "HoldingOut"]

REHEARSED = 0
MEASURED = 1
BESIDE = 2
"""Values of the column `held`: seen by sleeps; held out and measured; held out beside a measured near-duplicate."""

MOST_RUNS = 5
"""How many runs of a class are held out at most; one sample of each is measured."""

_MOST = 10  # samples are held out of a class at most, those beside measured ones included
_FROM = 20  # samples of a class, before any is held out
_EVERY = 4  # samples of a class for each that is held out, at least
_NEIGHBOURS = 11  # samples of a class that a new one is compared with: a run of `_MOST`, and the sample before it
_WINDOW = 64  # arrivals that they are among
_OTHERS = 8  # samples of other classes that say how many bytes are equal by chance, or for the same background
_LEAST_SHARE = 0.05  # of bytes by which near-duplicates have more in common than these
_ERROR = 2.0  # divided by the square root of the number of bytes, and added to it


class HoldingOut:
    """Decides on which side of a learner's held-out samples a new one is; runs in the caller's transaction."""

    def __init__(self, connection: sqlite3.Connection, code_bytes: int) -> None:
        self._connection = connection
        self._margin = _LEAST_SHARE + _ERROR / math.sqrt(code_bytes)

    def side(self, class_id: int, codes: bytes, taught: int, held: int) -> int:
        """Return the value of `held` for a sample that is about to be stored, and release a run that it makes too long.

        Args:
            class_id: Its class.
            codes: Its codes.
            taught: Number of samples of the class that were ever learned, this one included.
            held: Number of samples of the class that are held out.
        """
        if taught < _FROM:
            return REHEARSED
        is_due = held < MOST_RUNS and taught >= _FROM + _EVERY * held
        before = self._before(class_id)
        if not is_due and not any(side for _, side in before):
            return REHEARSED
        near = self._near(class_id, codes, [sample for sample, _ in before])
        sides = {side for (_, side), is_near in zip(before, near, strict=True) if is_near}
        if not sides:
            return MEASURED if is_due else REHEARSED
        if REHEARSED not in sides and held < _MOST:
            return BESIDE
        if sides != {REHEARSED}:
            self._release(class_id, before)
        return REHEARSED

    def _before(self, class_id: int) -> list[tuple[int, int]]:
        """Return the samples of a class among the last arrivals, newest first: their ids and sides."""
        return self._connection.execute(
            "SELECT id, held FROM samples WHERE class_id = ? AND id >"
            " (SELECT seq FROM sqlite_sequence WHERE name = 'samples') - ? ORDER BY id DESC LIMIT ?",
            (class_id, _WINDOW, _NEIGHBOURS),
        ).fetchall()

    def _near(self, class_id: int, codes: bytes, ids: list[int]) -> npt.NDArray[np.bool_]:
        """Return which of some samples have nearly these codes."""
        if not ids:
            return np.zeros(0, bool)
        others = self._connection.execute(
            "SELECT codes.codes FROM classes JOIN samples ON class_id = classes.id AND slot = 0"
            " JOIN codes ON codes.id = samples.id WHERE classes.id != ? LIMIT ?",
            (class_id, _OTHERS),
        ).fetchall()
        by_chance = np.median(_equal_shares(codes, [row[0] for row in others])) if others else 0.0
        rows = [
            self._connection.execute("SELECT codes FROM codes WHERE id = ?", (sample,)).fetchone() for sample in ids
        ]
        return _equal_shares(codes, [row[0] for row in rows]) > by_chance + self._margin

    def _release(self, class_id: int, before: list[tuple[int, int]]) -> None:
        """Let sleeps rehearse those of some samples that are held out."""
        run = [(sample,) for sample, side in before if side != REHEARSED]
        self._connection.executemany("UPDATE samples SET held = 0 WHERE id = ?", run)
        self._connection.execute("UPDATE classes SET held = held - ? WHERE id = ?", (len(run), class_id))


def _equal_shares(codes: bytes, others: list[bytes]) -> npt.NDArray[np.float64]:
    """Return the share of equal bytes of each of some codes, (B,)."""
    own = np.frombuffer(codes, np.uint8)
    return np.array([np.count_nonzero(own == np.frombuffer(other, np.uint8)) for other in others]) / max(len(own), 1)
