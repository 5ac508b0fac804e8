"""What a learner records of the packs that it hands to another machine for a sleep, and the edits since.

A record is an entry among the edits, so that those after it are what the sleep does not know.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from typing import Any

from siesta.errors import BadInput
from siesta.store.constants import ConstantTensors
from siesta.store.edits import StoreEdits
from siesta.store.generations import Generations
from siesta.store.samples import SampleTable
from siesta.store.session import Session

__all__ = ["PackRecord", "Packs"]

_WHAT = "pack"
_REMEDY = "pack it again and sleep on that"


@dataclass(frozen=True)
class PackRecord:
    """What the learner was when it was packed.

    Attributes:
        id: Id of the pack, random.
        generation: The active generation.
        last: The newest generation.
        newest: Id of the newest sample.
        codec: Hash of the codec.
    """

    id: str
    generation: int
    last: int
    newest: int
    codec: str


class Packs:
    """The records of a store's packs."""

    def __init__(
        self,
        session: Session,
        samples: SampleTable,
        generations: Generations,
        constants: ConstantTensors,
        edits: StoreEdits,
    ) -> None:
        self._session = session
        self._samples = samples
        self._generations = generations
        self._constants = constants
        self._edits = edits

    def record(self) -> PackRecord:
        """Record a new pack of the store as it is; requires `Store.sleeping`, so that nothing is edited meanwhile."""
        self._session.check_sleeping()
        with self._session.transaction():
            record = PackRecord(
                secrets.token_hex(16),
                self._generations.active(),
                self._generations.newest(),
                self._samples.newest(),
                self._constants.codec_hash(),
            )
            self._edits.record({"what": _WHAT, **asdict(record)})
        return record

    def find(self, pack_id: str) -> tuple[PackRecord, list[dict[str, Any]]]:
        """Return the record of a pack that may still be taken back, and the edits since, oldest first.

        Raises:
            BadInput: The pack is of another learner, its learner has slept since, or not all edits since are known.
        """
        entries = self._edits.numbered_audit()
        packed = [number for number, entry in entries if (entry["what"], entry.get("id")) == (_WHAT, pack_id)]
        if not packed:
            raise BadInput(f"it is not a pack of {self._session.path}: take it back into the learner that was packed")
        since = dict(entries[[number for number, _ in entries].index(packed[0]) :])
        values = since.pop(packed[0])
        record = PackRecord(**{name: values[name] for name in PackRecord.__dataclass_fields__})
        self._check_current(record)
        if len(since) != self._last_edit() - packed[0]:
            raise BadInput(f"{self._session.path} has lost the record of an edit since it was packed: {_REMEDY}")
        return record, list(since.values())

    def _last_edit(self) -> int:
        """Return the number of the last edit that was recorded, whether or not it still is."""
        with self._session.errors():
            query = "SELECT seq FROM sqlite_sequence WHERE name = 'audit'"
            (number,) = self._session.connection.execute(query).fetchone()
        return int(number)

    def _check_current(self, record: PackRecord) -> None:
        """Raise `BadInput` if weights or codec were replaced since."""
        if (self._generations.active(), self._generations.newest()) != (record.generation, record.last):
            raise BadInput(f"{self._session.path} has slept or was rolled back since it was packed: {_REMEDY}")
        if self._constants.codec_hash() != record.codec:
            raise BadInput(f"the codec of {self._session.path} was fitted again since it was packed: {_REMEDY}")
