"""The folder of one run: rows, predictions and checkpoints, so that a run can be killed at any moment and resumed.

A checkpoint is a copy of the method's folder, made after a step and renamed into place when it is complete. On
resuming, the rows of steps that no checkpoint covers are dropped, and these steps are run again.
"""

from __future__ import annotations

import errno
import io
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
from siesta.files import disk_errors, replace_file, replace_folder

__all__ = ["Row", "RunFolder", "read_predictions", "read_rows", "remedy"]

Row = dict[str, Any]
"""A row of results, one line of `rows.jsonl`."""

_NO_STEP = -1


class RunFolder:
    """The files of one run.

    Attributes:
        path: The folder.
        last_step: The last step with a checkpoint, -1 without any.
    """

    def __init__(self, path: Path, identity: str) -> None:
        """Open the folder of a run, which need not exist.

        Args:
            path: The folder.
            identity: Hash of everything that the run's results depend on.

        Raises:
            BadInput: The folder belongs to a run with another identity.
        """
        self.path = path
        self._identity = identity
        self._check_identity()
        self.last_step = self._last_checkpoint()

    def _check_identity(self) -> None:
        file = self.path / "identity"
        if file.exists() and file.read_text("utf-8", errors="replace") != self._identity:
            raise BadInput(
                f"{self.path} holds this run with another config: give another --out, or remove it to run it again"
            )

    @property
    def done(self) -> bool:
        """Whether all steps of the run are complete."""
        return (self.path / "done").exists()

    @property
    def work(self) -> Path:
        """The method's folder while it runs."""
        return self.path / "work"

    def _last_checkpoint(self) -> int:
        numbers = [folder.name.removeprefix("checkpoint-") for folder in self.path.glob("checkpoint-*")]
        return max((int(number) for number in numbers if number.isdecimal()), default=_NO_STEP)

    def begin(self, initial_state: Path) -> None:
        """Restore the method's folder from the last checkpoint, or else from `initial_state`, and drop later rows."""
        source = initial_state if self.last_step == _NO_STEP else self.path / f"checkpoint-{self.last_step}"
        rows = self._checkpointed_rows()
        with disk_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            replace_file(self.path / "identity", self._identity)
            _copy(source, self.work)
            replace_file(self.path / "rows.jsonl", "".join(_line(row) for row in rows))

    def _checkpointed_rows(self) -> list[Row]:
        """Return the rows of all steps up to the last checkpoint; raise `Damaged` if one is missing."""
        file = self.path / "rows.jsonl"
        try:
            rows = [row for row in read_rows(self.path) if row["step"] <= self.last_step]
            missing = set(range(self.last_step + 1)) - {row["step"] for row in rows if row["phase"] == "after"}
        except (KeyError, TypeError) as error:
            raise Damaged(f"{file} is damaged: remove {self.path} to run it again") from error
        if missing:
            raise Damaged(f"{file} lacks the rows of step {min(missing)}: remove {self.path} to run it again")
        return rows

    def add(self, row: Row, predictions: Mapping[str, npt.NDArray[np.int32]]) -> None:
        """Append a row and store the predictions that it summarises."""
        line = _line(row)  # before anything is written
        with disk_errors(self.path):
            self._store_predictions(row, predictions)
            with (self.path / "rows.jsonl").open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())

    def _store_predictions(self, row: Row, predictions: Mapping[str, npt.NDArray[np.int32]]) -> None:
        file = self.path / "predictions" / f"{row['step']:02d}-{row['phase']}.npz"
        file.parent.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        np.savez_compressed(content, allow_pickle=False, **predictions)
        replace_file(file, content.getvalue())

    def checkpoint(self, step: int) -> None:
        """Copy the method's folder as the checkpoint after `step`; the method must have saved its state to it."""
        with disk_errors(self.path):
            _copy(self.work, self.path / f"checkpoint-{step}")
        if self.last_step != _NO_STEP:
            shutil.rmtree(self.path / f"checkpoint-{self.last_step}")
        self.last_step = step

    def finish(self) -> None:
        """Mark the run as done; rows and predictions stay, weights and stored samples are removed."""
        with disk_errors(self.path):
            replace_file(self.path / "done", "")
        for folder in (self.work, *self.path.glob("checkpoint-*")):
            shutil.rmtree(folder, ignore_errors=True)

    def rows(self) -> list[Row]:
        """Return the rows stored so far."""
        return read_rows(self.path)


def remedy(path: Path) -> str:
    """Return what to do about a damaged run: run it again, or restore it if it is an archive."""
    if (path / "identity").exists() or (path / "predictions").exists():
        return f"remove {path} to run it again"
    return "restore it from a copy, or archive the run again"


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a run's folder without a last line that a crash cut off."""
    file = path / "rows.jsonl"
    try:
        lines = file.read_text("utf-8").splitlines(keepends=True) if file.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]
    except (OSError, ValueError) as error:
        raise Damaged(f"{file} is damaged: {remedy(path)}") from error


def read_predictions(path: Path, step: int, phase: str) -> dict[str, npt.NDArray[np.int32]]:
    """Return the predictions behind a row.

    Returns:
        samples: Indices of test samples, (N,).
        truth: Their classes, (N,).
        top: The best five classes of each, (N, 5), -1 where there are fewer.
        new_classes: Classes first seen in the step.
    """
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
    """Replace `target` by a copy of `source`, completely or not at all."""
    try:
        with replace_folder(target) as partial:
            shutil.copytree(source, partial, ignore=shutil.ignore_patterns("*-shm", "lock"), dirs_exist_ok=True)
    except shutil.Error as error:  # holds a list of all errors, as text
        full = f"[Errno {errno.ENOSPC}]" in str(error)
        raise OSError(errno.ENOSPC if full else errno.EIO, "a copy failed") from error
