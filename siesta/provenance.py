"""When, from which code and on what machine a figure was made."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["provenance"]


def provenance() -> dict[str, Any]:
    """Date, commit and machine, as every results row carries them."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _COMMIT,
        "machine": {
            "cores": os.cpu_count(),
            "processor": platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
            **{package: version(package) for package in ("torch", "faiss-cpu", "siesta-learn")},
        },
    }


def _commit() -> str | None:
    """The checkout's commit, marked when the code differs from it; None outside a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


_COMMIT = _commit()  # of the code as it is loaded: while a long run goes on, the checkout may move
