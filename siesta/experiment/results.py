"""Runs read from disk and verified: every accuracy is recomputed from the stored predictions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.contracts import Resources
from siesta.errors import BadInput, Damaged
from siesta.experiment.archive import (
    ARCHIVE_FILE,
    PredictionArrays,
    PredictionReader,
    archive_run,
    prediction_reader,
    stored_phases,
)
from siesta.experiment.metrics import Predictions, RunMetrics, StepPredictions, run_metrics
from siesta.experiment.result_row import validate_row
from siesta.experiment.run_folder import Row, read_rows, remedy
from siesta.methods import METHODS

__all__ = ["KS", "FinishedRun", "Results", "UnfinishedRun", "archive_runs", "read_results", "read_run"]

KS = (1, 5)
"""Accuracies are reported as top-k for these k."""


_SUBSETS = {"classes": "the first {} classes", "images_per_class": "{} training images a class"}
"""Options of every data set that leave out a part of it, and their descriptions."""


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A finished run.

    Attributes:
        path: Its folder.
        source: Name of the experiment's folder.
        rows: One row for each step, after its sleep. Costs are taken from them; their accuracies are verified.
        steps: The predictions of each step.
        samples: Indices of the test samples evaluated at the end, (n,).
    """

    path: Path
    source: str
    rows: Sequence[Row]
    steps: Sequence[StepPredictions]
    samples: npt.NDArray[np.integer]

    @property
    def last(self) -> Row:
        """The row of the last step."""
        return self.rows[-1]

    @property
    def offline(self) -> bool:
        """Whether the method gets all samples in one step."""
        method = METHODS.get(self.last["kind"])
        return method is not None and method.offline

    @property
    def data(self) -> str:
        """Description of the data; the experiment's name for rows of versions that did not record the data."""
        data: dict[str, Any] | None = self.last.get("data")
        if data is None:
            return str(self.last["experiment"])
        parts = [f"{data['dataset']}, {data['image_size']} px"]
        for name, value in sorted(data.get("options", {}).items()):
            parts.append(_SUBSETS[name].format(value) if name in _SUBSETS else f"{name} {value}")
        if data.get("held_out"):
            parts.append(f"tested on {data['held_out']:.0%} of the training images, held out")
        return ", ".join(parts)

    @property
    def whole_dataset(self) -> str | None:
        """Name of the data set if all of it was used, so that published results are comparable; else None."""
        data: dict[str, Any] | None = self.last.get("data")
        if data is None:
            return None
        whole = not data.get("held_out") and not _SUBSETS.keys() & data.get("options", {}).keys()
        return str(data["dataset"]) if whole else None

    @property
    def resources(self) -> Resources:
        """Costs of the whole run."""
        row = self.last
        return Resources(row["updates"], row["parameters"], row["bytes"], row["flops"], row["seconds"])

    @cached_property
    def metrics(self) -> dict[int, RunMetrics]:
        """All measures by k."""
        return {k: run_metrics(self.steps, k) for k in KS}


@dataclass(frozen=True)
class UnfinishedRun:
    """A run that is not finished; `last` is the row of its last complete step, if there is one."""

    path: Path
    source: str
    name: str
    last: Row | None


@dataclass(frozen=True)
class Results:
    """Finished and unfinished runs."""

    runs: list[FinishedRun]
    unfinished: list[UnfinishedRun]

    def paths(self) -> list[Path]:
        """Return the folders of all runs."""
        return [*(run.path for run in self.runs), *(run.path for run in self.unfinished)]


def read_results(folders: Iterable[Path]) -> Results:
    """Read every run below some folders: output folders of `siesta run`, archives, or single runs.

    Raises:
        BadInput: There are no runs, or the same run twice.
        Damaged: A file is missing, damaged or from a newer version, or rows and predictions disagree.
    """
    folders = list(folders)
    runs: dict[tuple[str, str], FinishedRun | UnfinishedRun] = {}
    for path in _run_folders(folders):
        run = read_run(path)
        other = runs.setdefault((run.source, path.name), run)
        if other is not run:
            raise BadInput(f"{other.path} and {path} have the same name: leave one out, or rename its folder")
    if not runs:
        raise BadInput(f"there are no runs in {', '.join(map(str, folders))}: give the --out folder of `siesta run`")
    return Results(
        [run for run in runs.values() if isinstance(run, FinishedRun)],
        [run for run in runs.values() if isinstance(run, UnfinishedRun)],
    )


def archive_runs(folders: Iterable[Path], target: Path) -> dict[Path, int]:
    """Archive every finished run as target/<experiment>/<run>; return the size of each in bytes."""
    results = read_results(folders)  # everything is verified before anything is written
    if not results.runs:
        raise BadInput("none of these runs is finished: run them to their end before archiving them")
    targets = {run.path: target / run.source / run.path.name for run in results.runs}
    for run in results.runs:
        if run.path.resolve() in (target.resolve(), *target.resolve().parents):
            raise BadInput(f"{target} lies inside the run {run.path}: choose another folder for archives")
    return {archive: archive_run(path, archive) for path, archive in targets.items()}


def _run_folders(folders: Iterable[Path]) -> list[Path]:
    found: dict[Path, Path] = {}  # by resolved path, so that a folder inside another counts once
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"there is no folder {folder}: give the --out folder of `siesta run`")
        for name in ("identity", "rows.jsonl"):
            found |= {file.parent.resolve(): file.parent for file in folder.rglob(name)}
    return [found[path] for path in sorted(found)]


def read_run(path: Path) -> FinishedRun | UnfinishedRun:
    """Read and verify the folder of one run, live or archived."""
    source = _source(path)
    rows = read_rows(path)
    for number, row in enumerate(rows, start=1):
        validate_row(path / "rows.jsonl", number, row)
    by_phase = {(row["step"], row["phase"]): row for row in rows}
    after = [by_phase[step, "after"] for step in range(len(rows)) if (step, "after") in by_phase]
    stored = _verified_predictions(path, by_phase) if rows else {}
    if not ((path / "done").exists() or (path / ARCHIVE_FILE).exists()):
        return UnfinishedRun(path, source, path.name, after[-1] if after else None)
    consecutive = [row["step"] for row in after] == list(range(len(after)))
    if not after or not consecutive or stored_phases(path) != set(by_phase):
        raise Damaged(f"{path / 'rows.jsonl'} lacks rows although the run is done: {remedy(path)}")
    steps = [_step_predictions(stored[step, "after"], stored.get((step, "before"))) for step in range(len(after))]
    return FinishedRun(path, source, after, steps, stored[len(after) - 1, "after"]["samples"])


def _source(path: Path) -> str:
    """Return the name of the experiment's folder: two levels up in a live folder, one in an archive."""
    parent = path.resolve().parent
    return parent.parent.name if parent.name == "runs" else parent.name


def _verified_predictions(path: Path, by_phase: dict[tuple[int, str], Row]) -> dict[tuple[int, str], PredictionArrays]:
    reader = prediction_reader(path)
    return {key: _verified(path, row, reader) for key, row in by_phase.items()}


def _verified(path: Path, row: Row, reader: PredictionReader) -> PredictionArrays:
    """Return the predictions behind a row; raise `Damaged` if they disagree with it."""
    arrays = reader(row["step"], row["phase"])
    archived = (path / ARCHIVE_FILE).exists()
    file = path / (ARCHIVE_FILE if archived else f"predictions/{row['step']:02d}-{row['phase']}.npz")
    try:
        predictions = Predictions(arrays["top"], arrays["truth"])
        recomputed = {"n": len(arrays["samples"]), **{f"top{k}": predictions.accuracy(k) for k in KS}}
        _ = arrays["new_classes"]
    except (KeyError, BadInput) as error:
        raise Damaged(f"{file} does not hold the predictions of a step: {remedy(path)}") from error
    for name, value in recomputed.items():
        if abs(value - row[name]) > 1e-9:
            when = f"step {row['step']} {row['phase']} sleep"
            raise Damaged(f"{file} gives {name} = {value} for {when}, rows.jsonl says {row[name]}: {remedy(path)}")
    return arrays


def _step_predictions(after: PredictionArrays, before: PredictionArrays | None) -> StepPredictions:
    return StepPredictions(
        after=Predictions(after["top"], after["truth"]),
        new=frozenset(int(label) for label in after["new_classes"]),
        before=None if before is None else Predictions(before["top"], before["truth"]),
    )
