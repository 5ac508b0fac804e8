"""Run the demo with three seeds and write results/demo.jsonl: python scripts/demo_results.py."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from siesta.cli.tour import BATCH_SIZE, IMAGE_SIZE, UPDATES, tour
from siesta.provenance import provenance

ROOT = Path(__file__).parent.parent
SEEDS = (0, 1, 2)


def main() -> None:
    """Write one row for each seed and step."""
    rows = []
    for seed in SEEDS:
        start = time.monotonic()
        steps = list(tour(seed))
        seconds = round(time.monotonic() - start, 1)
        config = {"seed": seed, "image_size": IMAGE_SIZE, "updates_a_sleep": UPDATES, "batch": BATCH_SIZE}
        rows += [
            {"bench": "demo", "config": config, "seconds_in_all": seconds, **asdict(step), **provenance()}
            for step in steps
        ]
        Console().print(f"seed {seed}: {steps[-1].before_sleep:.1f} -> {steps[-1].after_sleep:.1f} % in {seconds} s")
    (ROOT / "results" / "demo.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
