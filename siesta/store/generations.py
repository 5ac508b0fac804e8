"""The generations of a learner's weights: tensor files whose hashes are recorded in the database; one is active.

A generation is written beside the others and activated later, in one transaction with everything that depends on it.
Files without a recorded hash are what a crash left behind.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from siesta.errors import BadInput, Damaged
from siesta.store.session import Session
from siesta.store.tensor_files import (
    StoredTensors,
    Tensors,
    current_file,
    finish_next,
    write_folder,
    write_next,
)

__all__ = ["Generation", "Generations", "HeadEdit", "insert_first_generation", "now"]

_KEPT = 5  # generations besides the active one and the one before it
_COLUMNS = ("number", "made", "hashes", "since", "report", "in_use")
_SELECT = (
    "SELECT number, made, hashes, since, report, number = (SELECT generation FROM in_use)"
    " FROM generations WHERE hashes != '' AND number = coalesce(?, number) ORDER BY number"
)


@dataclass(frozen=True)
class Generation:
    """Weights as of one sleep.

    Attributes:
        number: Number of sleeps when it was made.
        made: Date and time at which it was made.
        hashes: SHA-256 of its files, by name.
        since: Id of the newest sample that its head includes; later ones are in the sums of their classes.
        report: Report of the sleep; None for generation 0.
        in_use: Whether it is active.
    """

    number: int
    made: str
    hashes: Mapping[str, str]
    since: int
    report: Mapping[str, Any] | None
    in_use: bool


HeadEdit = Callable[[Generation, Tensors], Tensors]
"""Maps a generation and the tensors of its head to the edited tensors."""


def insert_first_generation(connection: sqlite3.Connection, hashes: Mapping[str, str]) -> None:
    """Insert the rows of generation 0 with the hashes of its files, in the caller's transaction."""
    connection.execute("INSERT INTO generations VALUES (0, ?, ?, 0, NULL)", (now(), json.dumps(hashes)))
    connection.execute("INSERT INTO in_use VALUES (0, 0)")


class Generations:
    """The generations of a store, as files or, for a store in memory, as tensors."""

    def __init__(self, session: Session, first: Mapping[str, Tensors] | None = None) -> None:
        """Use the generations of a session.

        Args:
            session: The open store.
            first: Tensors of generation 0 of a store in memory, by name.
        """
        self._session = session
        self._folder = None if session.path is None else session.path / "generations"
        self._in_memory: dict[int, Mapping[str, Tensors]] = {} if first is None else {0: first}
        self._next_in_memory: dict[int, Mapping[str, Tensors]] = {}

    def in_memory(self) -> dict[int, dict[str, Tensors]]:
        """Return the tensors of a store without files, by number and name of their file."""
        return {number: dict(tensors) for number, tensors in self._in_memory.items()}

    def use_in_memory(self, tensors: Mapping[int, Mapping[str, Tensors]]) -> None:
        """Use what `in_memory` returned."""
        self._in_memory = dict(tensors)

    def active(self) -> int:
        """Return the number of the active generation."""
        return self._number("SELECT generation FROM in_use")

    def newest(self) -> int:
        """Return the number of the last generation that was made, which is the number of sleeps."""
        return self._number("SELECT max(number) FROM generations")

    def _number(self, query: str) -> int:
        rows = self._rows(query)
        if len(rows) != 1 or not isinstance(rows[0][0], int):
            raise Damaged(
                f"the record of the active generation of {self._folder} is damaged: `siesta repair` restores one"
            )
        return int(rows[0][0])

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._session.errors():
            return self._session.connection.execute(query, values).fetchall()

    def all(self) -> list[Generation]:
        """Return the generations whose weights are kept, oldest first."""
        return [_from_row(row) for row in self._rows(_SELECT, None)]

    def get(self, number: int) -> Generation:
        """Return a generation whose weights are kept."""
        rows = self._rows(_SELECT, number) if 0 <= number <= self.newest() else []
        if not rows:
            kept = ", ".join(str(generation.number) for generation in self.all())
            raise BadInput(f"there is no generation {number}: choose from {kept}")
        return _from_row(rows[0])

    def reports(self) -> list[dict[str, Any]]:
        """Return the reports of all sleeps, oldest first, each with the date under "made"."""
        rows = self._rows("SELECT made, report FROM generations WHERE report IS NOT NULL ORDER BY number")
        return [{"made": made, **_parsed(report)} for made, report in rows]

    def files(self, generation: Generation) -> dict[str, Path]:
        """Return the files of a generation, by name; none of a store in memory."""
        if self._folder is None:
            return {}
        folder = self._folder / _name(generation.number)
        return {name: current_file(folder, name, expected) for name, expected in generation.hashes.items()}

    def read(self, generation: Generation) -> dict[str, Tensors]:
        """Return the weights of a generation, by name of their file."""
        if self._folder is None:
            return {name: dict(tensors) for name, tensors in self._in_memory[generation.number].items()}
        folder = self._folder / _name(generation.number)
        return {name: StoredTensors(folder, name, expected) for name, expected in generation.hashes.items()}

    def add(self, tensors: Mapping[str, Tensors], since: int, report: Mapping[str, Any]) -> int:
        """Keep new weights beside the active ones; requires `Store.sleeping`.

        Args:
            tensors: Tensors of the new generation, by name of their file.
            since: Id of the newest sample that its head includes.
            report: JSON values to keep about the sleep.

        Returns:
            The number of the new generation.
        """
        with self._session.errors():
            number, hashes = self.write(tensors)
            with self._session.transaction():
                self.insert(number, hashes, since, report)
        return number

    def write(self, tensors: Mapping[str, Tensors]) -> tuple[int, Mapping[str, str]]:
        """Write the files of a new generation, which counts once it is inserted; return its number and their hashes."""
        self._session.check_sleeping()
        number = self.newest() + 1
        if self._folder is not None:
            return number, write_folder(self._folder / _name(number), tensors)
        self._in_memory[number] = tensors
        return number, dict.fromkeys(tensors, "")

    def insert(self, number: int, hashes: Mapping[str, str], since: int, report: Mapping[str, Any]) -> None:
        """Insert the row of a generation that was written, in the caller's transaction."""
        self._session.connection.execute(
            "INSERT INTO generations VALUES (?, ?, ?, ?, ?)",
            (number, now(), json.dumps(hashes), since, json.dumps(report)),
        )

    def activate(self, number: int) -> None:
        """Make a generation the active one, in the caller's transaction; see `WeightSwap` for the sums."""
        self._session.connection.execute("INSERT OR REPLACE INTO in_use VALUES (0, ?)", (number,))

    def write_next(self, name: str, edit: HeadEdit) -> dict[int, str]:
        """Write the edited version of a file of every generation beside the file; return their hashes."""
        self.finish()  # a version that an earlier edit could not rename is the current one, and must not be replaced
        hashes = {}
        for generation in self.all():
            tensors = edit(generation, self.read(generation)[name])
            if self._folder is None:
                self._next_in_memory[generation.number] = {name: tensors}
                hashes[generation.number] = ""
            else:
                hashes[generation.number] = write_next(self._folder / _name(generation.number), name, tensors)
        return hashes

    def record_hashes(self, name: str, hashes: Mapping[int, str]) -> None:
        """Record the hashes of edited files by generation, in the caller's transaction."""
        for generation in self.all():
            recorded = json.dumps({**generation.hashes, name: hashes[generation.number]})
            self._session.connection.execute(
                "UPDATE generations SET hashes = ? WHERE number = ?", (recorded, generation.number)
            )

    def finish(self) -> None:
        """Rename edited files whose hash is recorded, and remove the others."""
        for number, changed in self._next_in_memory.items():
            self._in_memory[number] = {**self._in_memory[number], **changed}
        self._next_in_memory.clear()
        if self._folder is not None:
            for generation in self.all():
                finish_next(self._folder / _name(generation.number), generation.hashes)

    def prune(self) -> None:
        """Remove all but the newest five, the active one and the one before it, which a reader may be opening."""
        generations = self.all()
        until_active = [generation.number for generation in generations if generation.number <= self.active()]
        kept = {*until_active[-2:], *(generation.number for generation in generations[-_KEPT:])}
        removed = [(generation.number,) for generation in generations if generation.number not in kept]
        with self._session.transaction(synced=bool(removed)):
            self._session.connection.executemany("UPDATE generations SET hashes = '' WHERE number = ?", removed)
        for number in set(self._in_memory) - kept:
            del self._in_memory[number]
        if self._folder is not None:
            self._remove_folders(self._folder, kept)
            self.finish()

    def _remove_folders(self, folder: Path, kept: set[int]) -> None:
        active = folder / _name(self.active())
        if not active.is_dir():
            raise Damaged(f"{active} is missing: restore it from a copy of the learner")
        names = {_name(number) for number in kept}
        for generation in folder.iterdir():
            if generation.name not in names:
                shutil.rmtree(generation, ignore_errors=True)


def _from_row(row: tuple[Any, ...]) -> Generation:
    values = dict(zip(_COLUMNS, row, strict=True))
    if not isinstance(values["since"], int):
        raise Damaged("the row of a generation is damaged: `siesta repair` keeps the others")
    values["hashes"] = _parsed(values["hashes"])
    values["report"] = None if values["report"] is None else _parsed(values["report"])
    values["in_use"] = bool(values["in_use"])
    return Generation(**values)


def _parsed(text: Any) -> dict[str, Any]:
    """Return the JSON object in a column."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError) as error:
        raise Damaged(f"the row of a generation is damaged ({error}): `siesta repair` keeps the others") from error
    if not isinstance(value, dict):
        raise Damaged("the row of a generation is damaged: `siesta repair` keeps the others")
    return value


def _name(number: int) -> str:
    return f"{number:06d}"


def now() -> str:
    """Return the date and time in UTC, as rows have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
