"""Kill a learner, cut its power, refuse its calls and damage its files, one point after the other.

python -m tests.faults --record             # everything; each part appends its figures to results/faults.jsonl
python -m tests.faults --quick              # a few hundred points
python -m tests.faults crashes --operation learn
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from tests.faults import shim
from tests.faults.operations import use_small_parts
from tests.faults.record import append
from tests.faults.suites import QUICK, SUITES, Case, Extent, run

_IN_RAM = Path("/dev/shm")  # where syncs take no time


def main() -> None:
    """Run suites in a process that has the shim preloaded; exit with 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", help=f"some of {', '.join(SUITES)}; all without any")
    parser.add_argument("--operation", action="append", help="an operation; all without any")
    parser.add_argument("--quick", action="store_true", help="a few operations, and some of the points")
    parser.add_argument("--every", type=int, default=1, help="take one of so many points only")
    parser.add_argument("--record", action="store_true", help="append the figures to results/faults.jsonl")
    options = parser.parse_args()
    place = _IN_RAM if _IN_RAM.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        if not shim.is_loaded():
            environment = {**os.environ, "LD_PRELOAD": str(shim.build(Path(folder)))}
            sys.exit(subprocess.run([sys.executable, "-m", "tests.faults", *sys.argv[1:]], env=environment).returncode)
        torch.set_num_threads(1)
        use_small_parts()
        suites = options.suites or list(SUITES)
        extent = QUICK if options.quick else Extent(crashes=options.every, errors=options.every, damage=options.every)
        command = " ".join(["python -m tests.faults", *(word for word in sys.argv[1:] if word != "--record")])
        wrong = 0
        for cases in run(suites, options.operation, extent, Path(folder)):
            for row in _rows(cases):
                wrong += row["wrong"]
                if options.record:
                    config = {"part": row.pop("part"), "every": options.every}
                    append({"bench": row.pop("suite"), "config": config, **row, "command": command})
    sys.exit(wrong > 0)


def _rows(cases: Iterator[Case]) -> list[dict[str, Any]]:
    """Print what is wrong; return a row for each suite and part, with numbers of cases and of those with problems."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for case in cases:
        new = {"suite": case.suite, "part": case.part, "points": 0, "wrong": 0}
        row = rows.setdefault((case.suite, case.part), new)
        row["points"] += 1
        row["wrong"] += bool(case.problems)
        if case.outcome:
            row[case.outcome] = row.get(case.outcome, 0) + 1
        for problem in case.problems:
            sys.stdout.write(f"{case.suite}, {case.part}, {case.point}: {problem}\n")
    for (suite, name), row in rows.items():
        sys.stdout.write(f"{suite:12} {name:16} {row['points']:6} points {row['wrong']:4} wrong\n")
    sys.stdout.flush()
    return list(rows.values())


if __name__ == "__main__":
    main()
