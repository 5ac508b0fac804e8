"""What tests of scripts share."""

from __future__ import annotations

from pathlib import Path

import pytest

from siesta.backbones import BACKBONES
from tests.pretrain.toys import TINY, TINY_SPEC, draw_textures


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKBONES, TINY, TINY_SPEC)


@pytest.fixture
def textures(tmp_path: Path) -> Path:
    """`train/<class>/*` and `test/<class>/*`."""
    for part, seed in (("train", 0), ("test", 1)):
        draw_textures(tmp_path / "textures" / part, each=20, seed=seed)
    return tmp_path / "textures"
