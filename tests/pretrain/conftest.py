"""What tests of pre-training share."""

from __future__ import annotations

from pathlib import Path

import pytest

from siesta.backbones import BACKBONES
from tests.pretrain.toys import RECIPE, TINY, draw_textures


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The tiny network is known, and copies of pictures go nowhere else."""
    monkeypatch.setitem(BACKBONES, TINY, RECIPE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def textures(tmp_path: Path) -> Path:
    return draw_textures(tmp_path / "textures")
