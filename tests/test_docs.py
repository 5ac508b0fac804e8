"""The README is true: its figures are those of the results files, and every row says where it comes from."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = sorted((ROOT / "results").rglob("*.jsonl"))


def test_readme_and_results_agree() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.results", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_result_says_where_it_comes_from(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert rows
    for row in rows:
        kind = "schema" if path.name == "rows.jsonl" else "bench"  # an archived run, or anything else
        assert {kind, "config", "date", "commit", "machine"} <= set(row)
