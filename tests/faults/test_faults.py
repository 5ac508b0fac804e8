"""A learner that is killed, loses power, is refused calls or is damaged loses nothing and is never silently wrong."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> str:
    """Run suites; return what they print."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for the library that records and refuses calls")
    command = [sys.executable, "-m", "tests.faults", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_at_some_points_nothing_is_lost_or_wrong() -> None:
    printed = run("--quick")
    for suite in ("kill", "power cut", "refused call", "damage"):
        assert f"\n{suite} " in f"\n{printed}"


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("suite", ["crashes", "errors", "damage"])
def test_at_no_point_anything_is_lost_or_wrong(suite: str) -> None:
    run(suite)
