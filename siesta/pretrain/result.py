"""The file of weights that a run writes, and the files beside it: record, lock and checkpoint."""

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
from siesta.files import Lock, disk_errors, replace_file
from siesta.pretrain import distributed
from siesta.pretrain.loop import EpochRecord
from siesta.provenance import provenance
from siesta.sleep.resume import check_same_settings

__all__ = ["OutputFile", "PretrainResult"]


@dataclass(frozen=True)
class PretrainResult:
    """What a call of `pretrain` did; its fields are keys of the record file and of `--json`.

    Attributes:
        status: "trained"; "interrupted" if the run can be resumed; "known" if it was done before and nothing changed.
        pictures: Images trained on, repetitions included.
        epochs: Passes over the folder.
        seconds: Seconds spent in steps.
        history: One record for each epoch, and one for the network before its first step.
        warning: Sign of collapse at the end, if there is one.
        skipped: Error messages of the images that could not be read.
    """

    status: Literal["trained", "interrupted", "known"]
    pictures: int
    epochs: float
    seconds: float
    history: tuple[EpochRecord, ...]
    warning: str | None
    skipped: tuple[str, ...] = ()


class OutputFile:
    """The file of weights of a run, with `.json` (record), `.part` (checkpoint) and a hidden lock beside it."""

    def __init__(self, path: Path) -> None:
        if not path.name:
            raise BadInput(f"'{path}' is not the name of a file: choose one such as swav.safetensors")
        self.path = path
        self.checkpoint = path.with_name(f"{path.name}.part")
        self._record = path.with_name(f"{path.name}.json")
        self._lock = path.with_name(f".{path.name}.lock")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Refuse other processes but the ranks of this run; fail at once where the folder cannot be written."""
        if distributed.rank() != 0:
            yield
            return
        with disk_errors(self.path):
            lock = Lock(self._lock, lambda pid: f"{self.path} is being made by process {pid}: wait for it or stop it")
        try:
            yield
        finally:
            self._lock.unlink(missing_ok=True)
            lock.release()

    def finished_result(self, identity: Mapping[str, Any]) -> PretrainResult | None:
        """Return the result of the same run if it was done before, and None if there is no such file.

        Raises:
            BadInput: A file is there that another run or program wrote and that this run would replace.
        """
        if not self.path.exists():
            if self._record.exists() and not self._is_own_record():
                raise BadInput(
                    f"{self._record} exists already, and this run would replace it: choose another name or move it"
                )
            return None
        try:
            facts = json.loads(self._record.read_text("utf-8"))
            check_same_settings(self.path, facts["settings"], identity)
            history = tuple(EpochRecord(**epoch) for epoch in facts["history"])
            totals = {name: facts[name] for name in ("pictures", "epochs", "seconds", "warning")}
            return PretrainResult("known", history=history, skipped=tuple(facts["skipped"]), **totals)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{self.path} exists already: choose another name or remove it first") from error

    def _is_own_record(self) -> bool:
        try:
            return {"settings", "history"} <= set(json.loads(self._record.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return False

    def write(self, backbone: Backbone, facts: Mapping[str, Any]) -> None:
        """Write the record and the weights, then remove the checkpoint."""
        if self.path.exists():
            raise BadInput(
                f"{self.path} was written by another program during the run: move it away and run the same command "
                "again, which then writes the weights"
            )
        replace_file(self._record, json.dumps({**facts, **provenance()}, indent=1))
        replace_file(self.path, checkpoint_bytes(backbone))
        self.checkpoint.unlink(missing_ok=True)
