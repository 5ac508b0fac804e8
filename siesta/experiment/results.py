"""What was run, read from disk and checked: every accuracy is computed from the stored predictions again."""

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
from siesta.experiment.archive import ARCHIVED, Answers, Arrays, answers_of, archive_run, phases_of
from siesta.experiment.metrics import Predictions, Step, Summary, summary
from siesta.experiment.result_row import check_row
from siesta.experiment.run_folder import Row, read_rows, remedy
from siesta.methods import METHODS

__all__ = ["KS", "Results", "Run", "Unfinished", "archive_runs", "read_results", "read_run"]

KS = (1, 5)


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run.

    Attributes:
        path: Its folder.
        source: Name of the experiment's folder.
        rows: One for each step after its sleep; what they say of costs is theirs, accuracies are checked.
        steps: What was predicted.
        samples: Test samples asked about at the end, (n,).
    """

    path: Path
    source: str
    rows: Sequence[Row]
    steps: Sequence[Step]
    samples: npt.NDArray[np.integer]

    @property
    def last(self) -> Row:
        """The row of its end."""
        return self.rows[-1]

    @property
    def offline(self) -> bool:
        """Whether it saw everything at once."""
        kind = METHODS.get(self.last["kind"])
        return kind is not None and kind.offline

    @property
    def data(self) -> str:
        """What it learned, in words; rows of earlier versions know their experiment's name only."""
        data: dict[str, Any] | None = self.last.get("data")
        if data is None:
            return str(self.last["experiment"])
        words = [f"{data['dataset']}, {data['image_size']} px"]
        for name, value in sorted(data.get("options", {}).items()):
            words.append(f"the first {value} classes" if name == "classes" else f"{name} {value}")
        if data.get("held_out"):
            words.append(f"tested on {data['held_out']:.0%} of the training pictures, held out")
        return ", ".join(words)

    @property
    def published_as(self) -> str | None:
        """The name of the whole data set, on which alone printed results can be set beside; None for a part of it."""
        data: dict[str, Any] | None = self.last.get("data")
        if data is None:
            return None
        whole = not data.get("held_out") and "classes" not in data.get("options", {})
        return str(data["dataset"]) if whole else None

    @property
    def resources(self) -> Resources:
        """What it cost up to its end."""
        row = self.last
        return Resources(row["updates"], row["parameters"], row["bytes"], row["flops"], row["seconds"])

    @cached_property
    def summaries(self) -> dict[int, Summary]:
        """All that its predictions say, for each k."""
        return {k: summary(self.steps, k, offline=self.offline) for k in KS}


@dataclass(frozen=True)
class Unfinished:
    """A run on its way: how far it is, and the last row that was checked, if there is one."""

    path: Path
    source: str
    name: str
    last: Row | None


@dataclass(frozen=True)
class Results:
    """All that was found."""

    runs: list[Run]
    unfinished: list[Unfinished]

    def paths(self) -> list[Path]:
        """The folders of all runs."""
        return [*(run.path for run in self.runs), *(run.path for run in self.unfinished)]


def read_results(folders: Iterable[Path]) -> Results:
    """Reads every run below some folders: those of `siesta run`, archives, or single runs.

    Raises:
        BadInput: There is nothing to report, or the same run twice.
        Damaged: A file is missing, broken or newer than this version, or rows and predictions disagree.
    """
    folders = list(folders)
    runs: dict[tuple[str, str], Run | Unfinished] = {}
    for path in _run_folders(folders):
        run = read_run(path)
        twin = runs.setdefault((run.source, path.name), run)
        if twin is not run:
            raise BadInput(f"{twin.path} and {path} go by the same name: leave one out, or rename its folder")
    if not runs:
        raise BadInput(f"there are no runs in {', '.join(map(str, folders))}: give the --out folder of `siesta run`")
    return Results(
        [run for run in runs.values() if isinstance(run, Run)],
        [run for run in runs.values() if isinstance(run, Unfinished)],
    )


def archive_runs(folders: Iterable[Path], target: Path) -> dict[Path, int]:
    """Keeps every finished run as target/<experiment>/<run>; returns the bytes of each."""
    results = read_results(folders)  # all of it is right, or nothing is written
    if not results.runs:
        raise BadInput("none of these runs is finished: run them to their end before they are archived")
    places = {run.path: target / run.source / run.path.name for run in results.runs}
    for run in results.runs:
        if run.path.resolve() in (target.resolve(), *target.resolve().parents):
            raise BadInput(f"{target} lies inside the run {run.path}: keep archives somewhere else")
    return {place: archive_run(path, place) for path, place in places.items()}


def _run_folders(folders: Iterable[Path]) -> list[Path]:
    found: dict[Path, Path] = {}  # resolved, so that a folder inside another counts once
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"there is no folder {folder}: give the --out folder of `siesta run`")
        for name in ("identity", "rows.jsonl"):
            found |= {file.parent.resolve(): file.parent for file in folder.rglob(name)}
    return [found[path] for path in sorted(found)]


def read_run(path: Path) -> Run | Unfinished:
    """Reads and checks the folder of one run, live or archived."""
    home = path.resolve().parent
    source = home.parent.name if home.name == "runs" else home.name
    rows = read_rows(path)
    for number, row in enumerate(rows, start=1):
        check_row(path / "rows.jsonl", number, row)
    by_phase = {(row["step"], row["phase"]): row for row in rows}
    after = [by_phase[step, "after"] for step in range(len(rows)) if (step, "after") in by_phase]
    answers = answers_of(path) if rows else None
    stored = {key: _checked(path, row, answers) for key, row in by_phase.items()} if answers else {}
    if not ((path / "done").exists() or (path / ARCHIVED).exists()):
        return Unfinished(path, source, path.name, after[-1] if after else None)
    if not after or [row["step"] for row in after] != list(range(len(after))) or phases_of(path) != set(by_phase):
        raise Damaged(f"{path / 'rows.jsonl'} lacks rows although the run is done: {remedy(path)}")
    steps = [_step(stored[step, "after"], stored.get((step, "before"))) for step in range(len(after))]
    return Run(path, source, after, steps, stored[len(after) - 1, "after"]["samples"])


def _checked(path: Path, row: Row, answers: Answers) -> Arrays:
    """The predictions behind a row, which must say the same as it does."""
    arrays = answers(row["step"], row["phase"])
    archived = (path / ARCHIVED).exists()
    file = path / (ARCHIVED if archived else f"predictions/{row['step']:02d}-{row['phase']}.npz")
    try:
        predictions = Predictions(arrays["top"], arrays["truth"])
        found = {"n": len(arrays["samples"]), **{f"top{k}": predictions.accuracy(k) for k in KS}}
        _ = arrays["new_classes"]
    except (KeyError, BadInput) as error:
        raise Damaged(f"{file} does not hold the predictions of a step: {remedy(path)}") from error
    for name, value in found.items():
        if abs(value - row[name]) > 1e-9:
            where = f"step {row['step']} {row['phase']} sleep"
            raise Damaged(f"{file} gives {name} = {value} for {where}, rows.jsonl says {row[name]}: {remedy(path)}")
    return arrays


def _step(after: Arrays, before: Arrays | None) -> Step:
    return Step(
        after=Predictions(after["top"], after["truth"]),
        new=frozenset(int(some) for some in after["new_classes"]),
        before=None if before is None else Predictions(before["top"], before["truth"]),
    )
