"""Fixtures of tests of pre-training."""

from __future__ import annotations

from pathlib import Path

import pytest

from siesta.backbones import BACKBONES
from tests.pretrain.toys import TINY, TINY_SPEC, draw_textures


@pytest.fixture(autouse=True)
def _tiny_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Register the tiny network and put the picture cache into the temporary folder."""
    monkeypatch.setitem(BACKBONES, TINY, TINY_SPEC)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def textures(tmp_path: Path) -> Path:
    return draw_textures(tmp_path / "textures")
