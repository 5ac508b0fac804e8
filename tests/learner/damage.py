"""A small learner on disk, and ways to damage it and to compare it with an intact copy."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import numpy.typing as npt

from siesta.learner import Siesta
from siesta.learner.integrity import check
from siesta.store import Store

__all__ = ["LABELS", "NEWEST_TOP", "assert_usable", "codes_of", "copied", "execute", "files_of", "picture", "rewrite"]

LABELS = [f"class {number % 3}" for number in range(9)] + ["class 0", "class 1", "late"]
NEWEST_TOP = "generations/000001/top.safetensors"


def picture(number: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(number).integers(0, 256, (32, 32, 3), dtype=np.uint8)


def copied(intact: Path, path: Path) -> Path:
    """Copy a learner; the large files are links, because they are replaced and never written to."""
    shutil.copytree(intact, path, copy_function=os.link, ignore=shutil.ignore_patterns("*-shm", "*-wal"))
    for name in ("store.sqlite", "lock", "sleep.lock"):
        rewrite(path / name, (intact / name).read_bytes())
    return path


def rewrite(file: Path, data: bytes) -> None:
    file.unlink()
    file.write_bytes(data)


def execute(path: Path, *commands: str) -> None:
    with contextlib.closing(sqlite3.connect(path / "store.sqlite", isolation_level=None)) as connection:
        for command in commands:
            connection.execute(command)


def codes_of(path: Path) -> dict[int, bytes]:
    with contextlib.closing(Store.open(path, "read")) as store:
        ids = store.samples.ids()
        present, codes = store.samples.get(ids)
        assert present.all()
        return dict(zip(ids.tolist(), map(bytes, codes), strict=True))


def files_of(path: Path) -> dict[str, bytes]:
    """Return the contents of all files that a failed repair must not change."""
    files = (file for file in path.rglob("*") if file.is_file() and not file.name.endswith(("lock", "-shm", "-wal")))
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def assert_usable(path: Path, intact: Path, lost: int = 0) -> None:
    """Assert that a learner is undamaged, has all codes but `lost`, predicts and learns."""
    assert check(path) == []
    before, after = codes_of(intact), codes_of(path)
    assert after.items() <= before.items()
    assert len(after) == len(before) - lost
    with Siesta.open(path) as learner:
        learner.predict_one(picture(3))
        learner.learn_one(picture(50), "class 0")
        assert learner.predict_one(picture(50)).label
    assert check(path) == []
