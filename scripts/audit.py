"""Look up the advisories for the packages of constraints.txt in PyPI's JSON: python -m scripts.audit.

Adds a row to results/audit.jsonl. It asks for the pinned version; where only the newest one is served, an older pin is
listed as not covered. `make audit` runs pip-audit instead, which needs PyPI itself.
"""

from __future__ import annotations

import hashlib
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from scripts.measurement_tables import ROOT
from siesta.provenance import provenance

__all__ = ["audited", "main"]

_INDEX = "https://pypi.org/pypi"
_SECONDS = 30
_CONTROL = ("pycrypto", "2.6.1")  # its last release has advisories: an index without any has no advisories at all

Fetch = Callable[[str], dict[str, Any] | None]


def fetch(path: str) -> dict[str, Any] | None:
    """Return a JSON document of the index; None if there is none."""
    try:
        with urllib.request.urlopen(f"{_INDEX}/{path}/json", timeout=_SECONDS) as answer:  # noqa: S310
            document: dict[str, Any] = json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise
    return document


def advisories(name: str, version: str, get: Fetch) -> list[str] | None:
    """Return the ids of the advisories for a version of a package; None if the index does not say."""
    document = get(f"{name}/{version}") or get(name)
    if document is None or document["info"]["version"] != version or "vulnerabilities" not in document:
        return None
    return [entry["id"] for entry in document["vulnerabilities"] if not entry.get("withdrawn")]


def audited(constraints: str, get: Fetch) -> dict[str, Any]:
    """Return how many pinned packages the index covers, those it does not, and the advisories by package."""
    pins = [line.split("==") for line in constraints.split() if "==" in line]
    found = {f"{name} {version}": advisories(name, version, get) for name, version in pins}
    return {
        "packages": len(found),
        "not_covered": [pin for pin, ids in found.items() if ids is None],
        "advisories": {pin: ids for pin, ids in found.items() if ids},
    }


def main() -> None:
    """Audit the constraints and add a row; exit with 1 if there are advisories, or none are served."""
    if not advisories(*_CONTROL, fetch):
        sys.exit(f"{_INDEX} serves no advisories: run this where it does")
    content = (ROOT / "constraints.txt").read_text("utf-8")
    row = {
        "bench": "audit",
        "config": {"constraints": hashlib.sha256(content.encode()).hexdigest()},
        **audited(content, fetch),
        "command": "python -m scripts.audit",
        **provenance(),
    }
    with (ROOT / "results" / "audit.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(json.dumps(row, indent=1))
    sys.exit(bool(row["advisories"]))


if __name__ == "__main__":
    main()
