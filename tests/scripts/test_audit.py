"""Advisories for pinned packages."""

from __future__ import annotations

from typing import Any

from scripts.audit import audited

DOCUMENTS: dict[str, dict[str, Any]] = {
    "safe/1.0": {"info": {"version": "1.0"}, "vulnerabilities": []},
    "newest": {"info": {"version": "2.0"}, "vulnerabilities": [{"id": "PYSEC-1"}, {"id": "PYSEC-2", "withdrawn": "x"}]},
    "older": {"info": {"version": "3.1"}, "vulnerabilities": []},
}


def test_advisories_are_those_of_the_pinned_version_only() -> None:
    found = audited("safe==1.0\nnewest==2.0\nolder==3.0\nmissing==1\n", DOCUMENTS.get)
    assert found == {
        "packages": 4,
        "not_covered": ["older 3.0", "missing 1"],
        "advisories": {"newest 2.0": ["PYSEC-1"]},
    }
