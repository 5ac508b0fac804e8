"""Results to keep beside the code: of each run its rows and one small file with all its predictions.

    results/cub200/<experiment>/<run>/rows.jsonl
                                     /predictions.npz

The file holds, without pickles: `samples` and `truth` (N,), every test sample of the run and its class; and for each
step NN `NN-seen`, one bit a sample for those that were asked about, `NN-new`, the classes that came with it, and
`NN-before` and `NN-after`, (k, n), the best k classes. Class indices take two bytes. Nothing is lost: what is read
back is what the run wrote. CUB-200 (5,794 test pictures, four steps before and after sleep) takes 100 to 300 KB a run.
"""

from __future__ import annotations

import shutil
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput, Damaged
from siesta.experiment.run_folder import read_predictions, read_rows
from siesta.store.files import disk_errors

__all__ = ["ARCHIVED", "Answers", "Arrays", "answers_of", "archive_run", "phases_of", "read_archive"]

ARCHIVED = "predictions.npz"

Arrays = Mapping[str, npt.NDArray[np.integer]]
Answers = Callable[[int, str], Arrays]
"""Step and phase -> samples (n,), truth (n,), top (n, k) and new_classes."""


def phases_of(run: Path) -> set[tuple[int, str]]:
    """Steps and phases that a run's folder has predictions of."""
    if (run / ARCHIVED).exists():
        with np.load(run / ARCHIVED, allow_pickle=False) as stored:
            names = list(stored.files)
    else:
        names = [file.stem for file in (run / "predictions").glob("*.npz")]
    parts = (name.partition("-") for name in names)
    return {(int(step), phase) for step, _, phase in parts if step.isdecimal() and phase in ("before", "after")}


def answers_of(run: Path) -> Answers:
    """How to get at the predictions of a run's folder, live or archived."""
    if not (run / ARCHIVED).exists():
        return lambda step, phase: read_predictions(run, step, phase)
    stored = read_archive(run / ARCHIVED)

    def answers(step: int, phase: str) -> Arrays:
        if (step, phase) not in stored:
            raise Damaged(f"{run / ARCHIVED} lacks step {step} {phase} sleep: archive the run anew")
        return stored[step, phase]

    return answers


def archive_run(run: Path, target: Path) -> int:
    """Keeps a finished run in a folder, in place of what is there; returns the bytes that it takes."""
    rows, answers = read_rows(run), answers_of(run)
    if not rows or not ((run / "done").exists() or (run / ARCHIVED).exists()):
        raise BadInput(f"{run} is not finished: run it to its end before it is archived")
    arrays = _packed(run, {(row["step"], row["phase"]): answers(row["step"], row["phase"]) for row in rows})
    lines = (run / "rows.jsonl").read_bytes()
    partial, earlier = (target.with_name(f".{target.name}.{name}") for name in ("partial", "earlier"))
    with disk_errors(target):
        for leftover in (partial, earlier):
            shutil.rmtree(leftover, ignore_errors=True)
        partial.mkdir(parents=True)
        np.savez_compressed(partial / ARCHIVED, allow_pickle=False, **arrays)
        (partial / "rows.jsonl").write_bytes(lines)
        if target.exists():
            target.rename(earlier)
        partial.rename(target)
        shutil.rmtree(earlier, ignore_errors=True)
        return sum(file.stat().st_size for file in target.iterdir())


def _packed(run: Path, answers: Mapping[tuple[int, str], Arrays]) -> dict[str, npt.NDArray[np.integer]]:
    every = np.concatenate([some["samples"] for some in answers.values()])
    truth = np.concatenate([some["truth"] for some in answers.values()])
    samples, first = np.unique(every, return_index=True)
    arrays: dict[str, npt.NDArray[np.integer]] = {"samples": samples, "truth": _small(truth[first])}
    for (step, phase), some in answers.items():
        seen = np.isin(samples, some["samples"])
        parts = {"seen": np.packbits(seen), "new": _small(some["new_classes"])}
        alike = all(np.array_equal(arrays.get(f"{step:02d}-{name}", part), part) for name, part in parts.items())
        if not (alike and np.array_equal(samples[seen], some["samples"])):
            raise BadInput(f"{run} asked about other samples before and after a sleep: it cannot be archived")
        arrays |= {f"{step:02d}-{name}": part for name, part in parts.items()}
        arrays[f"{step:02d}-{phase}"] = np.ascontiguousarray(_small(some["top"]).T)  # by rank: it packs better
    return arrays


def _small(classes: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    fits = not len(classes) or int(classes.max()) <= np.iinfo(np.int16).max
    return classes.astype(np.int16 if fits else np.int32)


def read_archive(file: Path) -> dict[tuple[int, str], Arrays]:
    """All predictions of an archived run, by step and phase."""
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        samples, truth = arrays["samples"].astype(np.int32), arrays["truth"].astype(np.int32)
        found: dict[tuple[int, str], Arrays] = {}
        for name in arrays:
            step, _, phase = name.partition("-")
            if phase in ("before", "after"):
                seen = np.unpackbits(arrays[f"{step}-seen"], count=len(samples)).astype(bool)
                found[int(step), phase] = {
                    "samples": samples[seen],
                    "truth": truth[seen],
                    "top": np.ascontiguousarray(arrays[name].T).astype(np.int32),
                    "new_classes": arrays[f"{step}-new"].astype(np.int32),
                }
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise Damaged(f"{file} is damaged: archive the run anew") from error
    return found
