"""Running configs in tests, and reading what the runs left on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from siesta.experiment import RunStatus, load_config, planned_runs, read_dataset, run_all

_VARYING = ("seconds", "date", "commit", "machine")
"""Keys in which the rows of two equal runs may differ."""


def rows_of(config: Path, out: Path, *changes: str, stages: list[RunStatus] | None = None, **chosen: Any) -> list[Any]:
    settings = load_config(config, changes, **chosen)
    dataset = read_dataset(settings)
    on_stage = None if stages is None else stages.append
    return list(run_all(planned_runs(settings, dataset), dataset, out, on_stage))


def alike(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _VARYING}


def on_disk(out: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows of every run of an experiment, without the keys that may differ."""
    return {
        folder.name: [alike(json.loads(line)) for line in (folder / "rows.jsonl").read_text().splitlines()]
        for folder in sorted((out / "runs").iterdir())
    }


def answers(out: Path) -> dict[str, bytes]:
    return {str(file.relative_to(out)): file.read_bytes() for file in sorted(out.glob("runs/*/predictions/*.npz"))}
