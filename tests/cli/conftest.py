"""Learners and images that the tests of the commands share."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from siesta.learner import Siesta

ODD_FOLDERS = ["[red]", "deep 深い 'quoted' \"one\"", " padded ", "[bold]x"]
ODD_LABELS = [*ODD_FOLDERS, "[/]", ":bird:"]  # a slash cannot be in a folder's name, but in a label

_IGNORED = shutil.ignore_patterns("*-shm", "*-wal", "sleep")  # empty for a closed learner; status of other tests


@pytest.fixture(scope="session")
def empty_learner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty learner; read or copied, never changed."""
    path = tmp_path_factory.mktemp("cli") / "empty.siesta"
    Siesta.create(path, memory="1MB", image_size=32).close()
    return path


@pytest.fixture(scope="session")
def taught_learner(empty_learner: Path) -> Path:
    """A learner that knows three samples of each odd label; read or copied, never changed."""
    path = empty_learner.with_name("taught.siesta")
    shutil.copytree(empty_learner, path)
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 60 * (number % 4) + 60, (32, 32, 3), dtype=np.uint8) for number in range(18)]
    with Siesta.open(path) as learner:
        learner.learn_many(images, ODD_LABELS * 3)
    return path


@pytest.fixture
def empty_copy(empty_learner: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(empty_learner, tmp_path / "birds.siesta", ignore=_IGNORED))


@pytest.fixture
def taught_copy(taught_learner: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(taught_learner, tmp_path / "taught.siesta", ignore=_IGNORED))


@pytest.fixture
def image(tmp_path: Path) -> Path:
    Image.new("RGB", (50, 40), "red").save(tmp_path / "photo.png")
    return tmp_path / "photo.png"
