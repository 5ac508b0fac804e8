"""Provenance: the commit is that of the code as it was loaded."""

from __future__ import annotations

import subprocess
from datetime import datetime, timedelta
from importlib.metadata import version

import pytest

from siesta.provenance import provenance


def test_the_commit_is_that_of_the_code_as_it_was_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = provenance()["commit"]

    def moved(*_args: object, **_options: object) -> None:
        raise AssertionError("git was called again")

    monkeypatch.setattr(subprocess, "run", moved)
    assert provenance()["commit"] == loaded


def test_date_and_machine_are_recorded() -> None:
    facts = provenance()
    assert datetime.fromisoformat(facts["date"]).utcoffset() == timedelta(0)
    assert facts["machine"]["torch"] == version("torch")
