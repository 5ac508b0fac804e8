"""The entry point: Ctrl-C before the commands are imported."""

from __future__ import annotations

import subprocess
import sys

from tests.cli.running import ENVIRONMENT

INTERRUPTED_IMPORT = """
import sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "siesta.cli.app":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from siesta.cli import main
main()
"""


def test_ctrl_c_during_the_imports_ends_with_one_sentence() -> None:
    command = [sys.executable, "-c", INTERRUPTED_IMPORT]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=120)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "error: interrupted; no change was left incomplete\n"
