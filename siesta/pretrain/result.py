"""The file that a run writes, and what lies beside it: a record of what was done, a lock, a checkpoint on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from siesta.backbones import checkpoint_bytes
from siesta.contracts import Backbone
from siesta.errors import BadInput
from siesta.halfway import check_same
from siesta.pretrain import ranks
from siesta.pretrain.loop import Epoch
from siesta.provenance import provenance
from siesta.store.files import Lock, disk_errors, replace_file

__all__ = ["Pretrained", "ResultFile"]


@dataclass(frozen=True)
class Pretrained:
    """What a call has done.

    Attributes:
        status: "trained"; "interrupted" when it can go on; "known" when all was done before and nothing has changed.
        pictures: Looked at in all, repeats included.
        epochs: Passes over the folder.
        seconds: Spent in steps.
        history: Epoch by epoch, the network before its first step included.
        warning: What looks like collapse at the end, if anything does.
        skipped: Why some pictures could not be used.
    """

    status: Literal["trained", "interrupted", "known"]
    pictures: int
    epochs: float
    seconds: float
    history: tuple[Epoch, ...]
    warning: str | None
    skipped: tuple[str, ...] = ()


class ResultFile:
    """A file of weights that a run makes, with `.json`, `.part` and a hidden lock beside it, whatever it is called."""

    def __init__(self, path: Path) -> None:
        if not path.name:
            raise BadInput(f"'{path}' is no name of a file to write: choose one like swav.safetensors")
        self.path = path
        self.checkpoint = path.with_name(f"{path.name}.part")
        self._record = path.with_name(f"{path.name}.json")
        self._lock = path.with_name(f".{path.name}.lock")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keeps other processes away, but for other ranks; says at once where nothing can be written."""
        if ranks.rank() != 0:
            yield
            return
        with disk_errors(self.path):
            lock = Lock(self._lock, lambda pid: f"{self.path} is being made by process {pid}: wait for it or stop it")
        try:
            yield
        finally:
            self._lock.unlink(missing_ok=True)
            lock.release()

    def known(self, identity: Mapping[str, Any]) -> Pretrained | None:
        """What this very run did before, None if nothing; refuses where a file would be lost that is not its own."""
        if not self.path.exists():
            if self._record.exists() and not self._ours():
                raise BadInput(
                    f"{self._record} exists already, and would be written too: choose another name or move it"
                )
            return None
        try:
            facts = json.loads(self._record.read_text("utf-8"))
            check_same(self.path, facts["settings"], identity)
            history = tuple(Epoch(**epoch) for epoch in facts["history"])
            kept = {name: facts[name] for name in ("pictures", "epochs", "seconds", "warning")}
            return Pretrained("known", history=history, skipped=tuple(facts["skipped"]), **kept)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{self.path} exists already: choose another name or remove it first") from error

    def _ours(self) -> bool:
        try:
            return {"settings", "history"} <= set(json.loads(self._record.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return False

    def write(self, backbone: Backbone, facts: Mapping[str, Any]) -> None:
        """The weights, and beside them what was done; then the checkpoint goes."""
        if self.path.exists():
            raise BadInput(
                f"{self.path} has come into being meanwhile: move it away, and the same command ends the run"
            )
        replace_file(self._record, json.dumps({**facts, **provenance()}, indent=1).encode())
        replace_file(self.path, checkpoint_bytes(backbone))
        self.checkpoint.unlink(missing_ok=True)
