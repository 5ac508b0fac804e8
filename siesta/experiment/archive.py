"""Archives of finished runs, small enough for a repository: the rows and one compressed file with all predictions.

    results/cub200/<experiment>/<run>/rows.jsonl
                                     /predictions.npz

The `.npz` file contains no pickles. `samples` and `truth`, (N,), hold every test sample of the run and its class. Each
step NN has `NN-seen`, one bit per sample that was evaluated; `NN-new`, the classes first seen in the step; and
`NN-before` and `NN-after`, (k, n), the best k classes. Class indices take two bytes. Archiving is lossless: reading an
archive gives the same arrays as the run's folder. A run on CUB-200 (5,794 test images, four steps, before and after
sleep) takes 100 to 300 KB.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput, Damaged
from siesta.experiment.run_folder import read_predictions, read_rows
from siesta.files import disk_errors, replace_folder

__all__ = [
    "ARCHIVE_FILE",
    "PredictionArrays",
    "PredictionReader",
    "archive_run",
    "prediction_reader",
    "read_archive",
    "stored_phases",
]

ARCHIVE_FILE = "predictions.npz"

PredictionArrays = Mapping[str, npt.NDArray[np.integer]]
"""The arrays samples (n,), truth (n,), top (n, k) and new_classes of one evaluation."""

PredictionReader = Callable[[int, str], PredictionArrays]
"""Maps a step and a phase to the predictions of that evaluation."""


def stored_phases(run: Path) -> set[tuple[int, str]]:
    """Return the (step, phase) pairs that a run's folder has predictions for."""
    if (run / ARCHIVE_FILE).exists():
        with np.load(run / ARCHIVE_FILE, allow_pickle=False) as stored:
            names = list(stored.files)
    else:
        names = [file.stem for file in (run / "predictions").glob("*.npz")]
    parts = (name.partition("-") for name in names)
    return {(int(step), phase) for step, _, phase in parts if step.isdecimal() and phase in ("before", "after")}


def prediction_reader(run: Path) -> PredictionReader:
    """Return a reader for the predictions of a run's folder, live or archived."""
    if not (run / ARCHIVE_FILE).exists():
        return lambda step, phase: read_predictions(run, step, phase)
    stored = read_archive(run / ARCHIVE_FILE)

    def read(step: int, phase: str) -> PredictionArrays:
        if (step, phase) not in stored:
            raise Damaged(f"{run / ARCHIVE_FILE} lacks step {step} {phase} sleep: archive the run again")
        return stored[step, phase]

    return read


def archive_run(run: Path, target: Path) -> int:
    """Archive a finished run as the folder `target`, replacing what is there; return the size in bytes."""
    rows = read_rows(run)
    reader = prediction_reader(run)
    if not rows or not ((run / "done").exists() or (run / ARCHIVE_FILE).exists()):
        raise BadInput(f"{run} is not finished: run it to its end before archiving it")
    arrays = _pack(run, {(row["step"], row["phase"]): reader(row["step"], row["phase"]) for row in rows})
    lines = (run / "rows.jsonl").read_bytes()
    with disk_errors(target):
        with replace_folder(target) as partial:
            np.savez_compressed(partial / ARCHIVE_FILE, allow_pickle=False, **arrays)
            (partial / "rows.jsonl").write_bytes(lines)
        return sum(file.stat().st_size for file in target.iterdir())


def _pack(run: Path, evaluations: Mapping[tuple[int, str], PredictionArrays]) -> dict[str, npt.NDArray[np.integer]]:
    """Return the arrays of an archive; the phases of a step must share their samples and new classes."""
    all_samples = np.concatenate([arrays["samples"] for arrays in evaluations.values()])
    all_truth = np.concatenate([arrays["truth"] for arrays in evaluations.values()])
    samples, first = np.unique(all_samples, return_index=True)
    packed: dict[str, npt.NDArray[np.integer]] = {"samples": samples, "truth": _shrink(all_truth[first])}
    for (step, phase), arrays in evaluations.items():
        seen = np.isin(samples, arrays["samples"])
        shared = {"seen": np.packbits(seen), "new": _shrink(arrays["new_classes"])}
        if f"{step:02d}-seen" in packed:
            consistent = all(np.array_equal(packed[f"{step:02d}-{name}"], part) for name, part in shared.items())
        else:
            consistent = True
            packed |= {f"{step:02d}-{name}": part for name, part in shared.items()}
        if not (consistent and np.array_equal(samples[seen], arrays["samples"])):
            raise BadInput(
                f"{run} was evaluated on different or unsorted test samples before and after a sleep: "
                "it cannot be archived"
            )
        by_rank = _shrink(arrays["top"]).T  # compresses better than by sample
        packed[f"{step:02d}-{phase}"] = np.ascontiguousarray(by_rank)
    return packed


def _shrink(classes: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """Return class indices in two bytes each where they fit, else in four."""
    fits = not len(classes) or int(classes.max()) <= np.iinfo(np.int16).max
    return classes.astype(np.int16 if fits else np.int32)


def read_archive(file: Path) -> dict[tuple[int, str], PredictionArrays]:
    """Return all predictions of an archived run by (step, phase)."""
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        return _unpack(arrays)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise Damaged(f"{file} is damaged: archive the run again") from error


def _unpack(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[tuple[int, str], PredictionArrays]:
    samples = arrays["samples"].astype(np.int32)
    truth = arrays["truth"].astype(np.int32)
    evaluations: dict[tuple[int, str], PredictionArrays] = {}
    for name in arrays:
        step, _, phase = name.partition("-")
        if phase not in ("before", "after"):
            continue
        seen = np.unpackbits(arrays[f"{step}-seen"], count=len(samples)).astype(bool)
        evaluations[int(step), phase] = {
            "samples": samples[seen],
            "truth": truth[seen],
            "top": np.ascontiguousarray(arrays[name].T).astype(np.int32),
            "new_classes": arrays[f"{step}-new"].astype(np.int32),
        }
    return evaluations
