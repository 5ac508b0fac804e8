"""Fixtures of the tests of `siesta.learner`."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from siesta import Siesta
from tests.learner.damage import LABELS, copied
from tests.learner.damage import picture as noise_picture
from tests.small import SMALL, create_small, register_small


@pytest.fixture(autouse=True, scope="package")
def _small_network() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        register_small(patch)
        yield


@pytest.fixture
def learner(tmp_path: Path) -> Siesta:
    return create_small(tmp_path / "colours.siesta", memory="100KB")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    folder.mkdir()
    for seed in range(24):
        Image.fromarray(np.random.default_rng(seed).integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(
            folder / f"{seed}.png"
        )
    return folder


@pytest.fixture(scope="package")
def intact(_small_network: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed learner with nine samples, a sleep, three more samples, and an empty write-ahead log."""
    return make_intact(tmp_path_factory.mktemp("integrity") / "intact.siesta", SMALL)


def make_intact(path: Path, backbone: str) -> Path:
    """Make the learner that `intact` describes with any network."""
    with Siesta.create(path, backbone=backbone, memory="20 samples", image_size=32) as learner:
        learner.learn_many([noise_picture(number) for number in range(9)], LABELS[:9], range(9))
        learner.sleep(updates=8, batch_size=4)
        learner.learn_many([noise_picture(number) for number in range(9, 12)], LABELS[9:], range(9, 12))
    with contextlib.closing(sqlite3.connect(path / "store.sqlite")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for ending in ("-wal", "-shm"):
        (path / f"store.sqlite{ending}").unlink(missing_ok=True)
    return path


@pytest.fixture
def path(intact: Path, tmp_path: Path) -> Path:
    """A copy of the intact learner, to be damaged."""
    return copied(intact, tmp_path / "copy.siesta")
