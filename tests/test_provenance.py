"""What a results row says about its making."""

from __future__ import annotations

import subprocess

import pytest

from siesta.provenance import provenance


def test_the_commit_is_that_of_the_code_as_it_was_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = provenance()["commit"]

    def moved(*_args: object, **_options: object) -> None:
        raise AssertionError("the checkout was looked at again")

    monkeypatch.setattr(subprocess, "run", moved)
    assert provenance()["commit"] == loaded
