"""The folder of one run: rows, predictions and checkpoints, so that it can be killed at any moment and go on.

A checkpoint is a copy of the method's folder, made after a step and renamed into place when it is whole. Rows of
steps that no checkpoint covers are dropped on resuming: those steps are run again.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput, Damaged
from siesta.store.files import disk_errors

__all__ = ["RunFolder", "read_predictions", "read_rows", "remedy"]

Row = dict[str, Any]
Predictions = Mapping[str, npt.NDArray[np.int32]]

_NOTHING_DONE = -1


class RunFolder:
    """What is on disk of one run; `identity` is the hash of all that its results depend on."""

    def __init__(self, path: Path, identity: str) -> None:
        self.path, self._identity = path, identity
        self._check()
        self.last_step = self._last_checkpoint()

    def _check(self) -> None:
        """Refuses the folder of another run."""
        file = self.path / "identity"
        if file.exists() and file.read_text("utf-8", errors="replace") != self._identity:
            raise BadInput(
                f"{self.path} holds this run under another config: give another --out, or remove it to run it anew"
            )

    @property
    def done(self) -> bool:
        """True once all of its steps are."""
        return (self.path / "done").exists()

    @property
    def work(self) -> Path:
        """Where the method lives while it runs."""
        return self.path / "work"

    def _last_checkpoint(self) -> int:
        numbers = [folder.name.removeprefix("checkpoint-") for folder in self.path.glob("checkpoint-*")]
        return max((int(number) for number in numbers if number.isdecimal()), default=_NOTHING_DONE)

    def begin(self, start: Path) -> None:
        """Lays out the method's folder as of the last checkpoint, or from `start`; forgets what came after it."""
        source = start if self.last_step == _NOTHING_DONE else self.path / f"checkpoint-{self.last_step}"
        kept = self._finished_rows()
        with disk_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            _write(self.path / "identity", self._identity)
            _copy(source, self.work)
            _write(self.path / "rows.jsonl", "".join(_line(row) for row in kept))

    def _finished_rows(self) -> list[Row]:
        """The rows of all steps up to the checkpoint; none may be missing."""
        file = self.path / "rows.jsonl"
        try:
            kept = [row for row in read_rows(self.path) if row["step"] <= self.last_step]
            lost = set(range(self.last_step + 1)) - {row["step"] for row in kept if row["phase"] == "after"}
        except (KeyError, TypeError) as error:
            raise Damaged(f"{file} is damaged: remove {self.path} to run it anew") from error
        if lost:
            raise Damaged(f"{file} has lost step {min(lost)}: remove {self.path} to run it anew")
        return kept

    def add(self, row: Row, predictions: Predictions) -> None:
        """Keeps a row and the predictions that it sums up."""
        with disk_errors(self.path):
            self._add(row, predictions)

    def _add(self, row: Row, predictions: Predictions) -> None:
        file = self.path / "predictions" / f"{row['step']:02d}-{row['phase']}.npz"
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")
        with partial.open("wb") as opened:
            np.savez_compressed(opened, allow_pickle=False, **predictions)
        partial.rename(file)
        with (self.path / "rows.jsonl").open("a", encoding="utf-8") as opened:
            opened.write(_line(row))
            opened.flush()
            os.fsync(opened.fileno())

    def checkpoint(self, step: int) -> None:
        """Keeps the method as it is after `step`; its folder must hold all of it."""
        with disk_errors(self.path):
            _copy(self.work, self.path / f"checkpoint-{step}")
        if self.last_step != _NOTHING_DONE:
            shutil.rmtree(self.path / f"checkpoint-{self.last_step}")
        self.last_step = step

    def finish(self) -> None:
        """All steps are done: weights and memory go, rows and predictions stay."""
        with disk_errors(self.path):
            _write(self.path / "done", "")
        for folder in (self.work, *self.path.glob("checkpoint-*")):
            shutil.rmtree(folder, ignore_errors=True)

    def rows(self) -> list[Row]:
        """The rows so far."""
        return read_rows(self.path)


def remedy(path: Path) -> str:
    """What to do about a run that is damaged: it is made again, or if it is an archive, brought back."""
    if (path / "identity").exists() or (path / "predictions").exists():
        return f"remove {path} to run it anew"
    return "restore it from your copy, or archive the run anew"


def read_rows(path: Path) -> list[Row]:
    """The rows of a run's folder; a last line that was cut off by a crash is left out."""
    file = path / "rows.jsonl"
    try:
        lines = file.read_text("utf-8").splitlines(keepends=True) if file.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]
    except (OSError, ValueError) as error:
        raise Damaged(f"{file} is damaged: {remedy(path)}") from error


def read_predictions(path: Path, step: int, phase: str) -> dict[str, npt.NDArray[np.int32]]:
    """The predictions behind a row: test samples (N,), their classes (N,), the best five (N, 5), -1 where fewer."""
    file = path / "predictions" / f"{step:02d}-{phase}.npz"
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except FileNotFoundError:
        raise Damaged(f"{file} is missing: {remedy(path)}") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise Damaged(f"{file} is damaged: {remedy(path)}") from error


def _line(row: Row) -> str:
    return json.dumps(row, allow_nan=False) + "\n"


def _copy(source: Path, target: Path) -> None:
    """Copies a folder, whole or not at all, in place of what was there."""
    partial = target.with_name(f".{target.name}.partial")
    for leftover in (partial, target):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        shutil.copytree(source, partial, ignore=shutil.ignore_patterns("*-shm", "lock"))
    except shutil.Error as error:  # a list of all that went wrong, as text
        full = f"[Errno {errno.ENOSPC}]" in str(error)
        raise OSError(errno.ENOSPC if full else errno.EIO, "a copy failed") from error
    partial.rename(target)


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
