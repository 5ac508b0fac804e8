"""The weights of a learner, generation by generation: files that rows of the database vouch for, one of them in use.

A generation is written beside the others and pointed at later, in one transaction with all that hangs on it. Files
that no row vouches for are what a crash left behind.
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

from torch import Tensor

from siesta.errors import BadInput, Damaged
from siesta.store import files, schema

__all__ = ["Edit", "Generation", "Generations"]

Tensors = Mapping[str, Tensor]
Weights = dict[str, dict[str, Tensor]]

_KEPT = (
    "SELECT number, made, hashes, since, report, number = (SELECT generation FROM in_use)"
    " FROM generations WHERE hashes != '' AND number = coalesce(?, number) ORDER BY number"
)


@dataclass(frozen=True)
class Generation:
    """Weights as of one sleep.

    Attributes:
        number: Sleeps so far when it was made.
        made: When that was.
        hashes: SHA-256 of its files, by name.
        since: The newest sample that its head has inside; what was taught later is counted in from the sums.
        report: What is kept about the sleep; None of the first, that never slept.
        in_use: Whether it answers.
    """

    number: int
    made: str
    hashes: Mapping[str, str]
    since: int
    report: Mapping[str, Any] | None
    in_use: bool


Edit = Callable[[Generation, dict[str, Tensor]], Tensors]
"""A generation and the tensors of one of its files -> those that the file shall have."""


class Generations:
    """All that are kept, of a store on disk or, with `path` None, in RAM."""

    def __init__(self, path: Path | None, connection: sqlite3.Connection) -> None:
        """Takes the folder of the learner and an open connection to its database."""
        self._path, self._folder = path, None if path is None else path / "generations"
        self._connection = connection
        self._in_ram: dict[int, Mapping[str, Tensors]] = {}
        self._beside: dict[int, Mapping[str, Tensors]] = {}

    @staticmethod
    def first(connection: sqlite3.Connection, hashes: Mapping[str, str]) -> None:
        """Rows of generation 0, in the caller's transaction."""
        connection.execute("INSERT INTO generations VALUES (0, ?, ?, 0, NULL)", (now(), json.dumps(hashes)))
        connection.execute("INSERT INTO in_use VALUES (0, 0)")

    def kept_in_ram(self, number: int, tensors: Mapping[str, Tensors]) -> None:
        """Takes the weights of a store without files."""
        self._in_ram[number] = tensors

    def used(self) -> int:
        """Number of the one in use."""
        return self._number("SELECT generation FROM in_use")

    def newest(self) -> int:
        """Number of the last one that was made; the sleeps so far."""
        return self._number("SELECT max(number) FROM generations")

    def _number(self, question: str) -> int:
        rows = self._rows(question)
        if len(rows) != 1 or not isinstance(rows[0][0], int):
            raise Damaged(f"it is lost which weights of {self._folder} are in use: `siesta repair` finds some")
        return int(rows[0][0])

    def _rows(self, question: str, *values: Any) -> list[tuple[Any, ...]]:
        with schema.database_errors(self._path):
            return self._connection.execute(question, values).fetchall()

    def all(self) -> list[Generation]:
        """Those whose weights are kept, oldest first."""
        return [_generation(row) for row in self._rows(_KEPT, None)]

    def get(self, number: int) -> Generation:
        """One of them."""
        rows = self._rows(_KEPT, number) if 0 <= number <= self.newest() else []
        if not rows:
            kept = ", ".join(str(generation.number) for generation in self.all())
            raise BadInput(f"there is no generation {number} any more: choose from {kept}")
        return _generation(rows[0])

    def reports(self) -> list[dict[str, Any]]:
        """What each sleep so far left behind, oldest first."""
        rows = self._rows("SELECT made, report FROM generations WHERE report IS NOT NULL ORDER BY number")
        return [{"made": made, **_parsed(report)} for made, report in rows]

    def read(self, generation: Generation) -> Weights:
        """Its weights, by name of file."""
        if self._folder is None:
            return {name: dict(tensors) for name, tensors in self._in_ram[generation.number].items()}
        folder = self._folder / _name(generation.number)
        return {name: files.read_vouched(folder, name, sha256) for name, sha256 in generation.hashes.items()}

    def add(self, tensors: Mapping[str, Tensors], since: int, report: Mapping[str, Any]) -> int:
        """Keeps a new generation, without using it; returns its number."""
        number, hashes = self.newest() + 1, dict.fromkeys(tensors, "")
        if self._folder is None:
            self._in_ram[number] = tensors
        else:
            hashes = files.replace_folder(self._folder / _name(number), tensors)
        with schema.transaction(self._connection):
            self._connection.execute(
                "INSERT INTO generations VALUES (?, ?, ?, ?, ?)",
                (number, now(), json.dumps(hashes), since, json.dumps(report)),
            )
        return number

    def use(self, number: int) -> None:
        """Points at a generation, in the caller's transaction."""
        self._connection.execute("INSERT OR REPLACE INTO in_use VALUES (0, ?)", (number,))

    def write_beside(self, name: str, edit: Edit) -> dict[int, str]:
        """Writes another version of a file of every generation beside the one in use; returns its hashes."""
        hashes = {}
        for generation in self.all():
            tensors = edit(generation, self.read(generation)[name])
            if self._folder is None:
                self._beside[generation.number] = {name: tensors}
                hashes[generation.number] = ""
            else:
                folder = self._folder / _name(generation.number)
                hashes[generation.number] = files.write_beside(folder, name, tensors)
        return hashes

    def vouch(self, name: str, hashes: Mapping[int, str]) -> None:
        """Puts the other versions in the place of the old ones, in the caller's transaction."""
        for generation in self.all():
            known = json.dumps({**generation.hashes, name: hashes[generation.number]})
            self._connection.execute("UPDATE generations SET hashes = ? WHERE number = ?", (known, generation.number))

    def finish(self) -> None:
        """Gives versions beside that are vouched for their names, and removes the others."""
        for number, changed in self._beside.items():
            self._in_ram[number] = {**self._in_ram[number], **changed}
        self._beside.clear()
        if self._folder is None:
            return
        for generation in self.all():
            files.name_vouched(self._folder / _name(generation.number), generation.hashes)

    def prune(self, kept: int) -> None:
        """Lets go of all but the newest `kept`, the one in use and the one before it, which a reader may be opening."""
        generations = self.all()
        used = [generation.number for generation in generations if generation.number <= self.used()][-2:]
        stay = {*used, *(generation.number for generation in generations[-kept:])}
        with schema.transaction(self._connection):
            self._connection.executemany(
                "UPDATE generations SET hashes = '' WHERE number = ?",
                [(generation.number,) for generation in generations if generation.number not in stay],
            )
        for number in set(self._in_ram) - stay:
            del self._in_ram[number]
        if self._folder is not None:
            self._remove_files(stay)
            self.finish()

    def _remove_files(self, stay: set[int]) -> None:
        assert self._folder is not None
        used = self._folder / _name(self.used())
        if not used.is_dir():
            raise Damaged(f"{used} is missing: restore it from a copy of the learner")
        names = {_name(number) for number in stay}
        for folder in self._folder.iterdir():
            if folder.name not in names:
                shutil.rmtree(folder, ignore_errors=True)


def _generation(row: tuple[Any, ...]) -> Generation:
    number, made, hashes, since, report, in_use = row
    if not isinstance(since, int):
        raise Damaged("the row of a generation is damaged: `siesta repair` keeps the others")
    return Generation(number, made, _parsed(hashes), since, None if report is None else _parsed(report), bool(in_use))


def _parsed(text: Any) -> dict[str, Any]:
    """A JSON object of a row."""
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
    """The moment, for rows."""
    return datetime.now(UTC).isoformat(timespec="seconds")
