"""Provenance of results: date, commit and machine."""

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
    """Return date, commit and machine, as stored in every result row."""
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
    """Return the commit of the checkout, marked as dirty if the code differs; None outside of a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()


_COMMIT = _commit()  # at import, because the checkout may change during a long run
