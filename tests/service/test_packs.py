"""The packs of a sleeper: leftovers of one that was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from siesta.service.packs import PackQueue
from siesta.service.problems import Problem


def test_what_a_killed_sleeper_left_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "packs" / "0123").mkdir(parents=True)
    (tmp_path / "packs" / "0123" / "pack").write_bytes(b"codes")
    (tmp_path / "packs" / "file").write_bytes(b"codes")
    queue = PackQueue(tmp_path / "packs", 1, threads=1, nice=0)
    assert list((tmp_path / "packs").iterdir()) == []
    with pytest.raises(Problem, match="no such pack"):
        queue.get("0123")
