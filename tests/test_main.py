"""`python -m siesta` is the same as the command `siesta`."""

from __future__ import annotations

import subprocess
import sys

from siesta import __version__


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "siesta", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"siesta {__version__}\n")
