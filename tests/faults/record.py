"""Results of injected faults: `results/faults.jsonl`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from siesta.provenance import provenance

__all__ = ["append"]

RESULTS = Path(__file__).parents[2] / "results" / "faults.jsonl"


def append(row: dict[str, Any]) -> None:
    """Append a row, with date, commit and machine."""
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**row, **provenance()}) + "\n")
