"""What is said where an extra is missing."""

from __future__ import annotations

import sys

import pytest

from siesta import BadInput
from siesta.extras import require, require_torch


def test_what_is_installed_is_not_missed() -> None:
    require_torch("sleep")
    require("numpy", "everything")


def test_one_sentence_says_how_to_install_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput) as raised:
        require("no_such_module", "the demo", "demo")
    assert str(raised.value) == (
        "the demo needs no_such_module, which is not installed: pip install 'siesta-learn[demo]'"
    )
    monkeypatch.setitem(sys.modules, "torch", None)  # makes its import fail
    with pytest.raises(BadInput, match=r"sleep needs torch, .* pip install 'siesta-learn\[sleep\]'"):
        require_torch("sleep")
