"""Small learners to start methods from: 32 px, one for each codec, made once and copied."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from siesta import Siesta
from siesta.contracts import Codes

COLOURS = np.array([[200 * (number >> bit & 1) for bit in range(3)] for number in (1, 6, 2, 5, 0, 7, 3, 4)])
"""One for each class; pictures are noise around them."""

Lesson = tuple[Codes, list[str]]


def pictures(classes: list[int], seed: int = 0) -> npt.NDArray[np.uint8]:
    """One a class in the list, (B, 32, 32, 3)."""
    rng = np.random.default_rng((seed, len(classes)))
    return np.stack([COLOURS[number] + rng.integers(0, 56, (32, 32, 3)) for number in classes]).astype(np.uint8)


class Start:
    """Copies of a learner folder, and codes that it would make."""

    def __init__(self, folder: Path, codec: str) -> None:
        self.codec, self._template, self._copies = codec, folder / f"{codec}.siesta", folder / "copies"
        self._copies.mkdir(exist_ok=True)
        self._numbers = itertools.count()
        memory = "20KB" if codec == "opq" else "1MB"
        with Siesta.create(self._template, codec=codec, image_size=32, memory=memory) as learner:
            self._pipeline = learner.pipeline

    def folder(self, base: Lesson | None = None) -> Path:
        """A fresh copy; with `base` it has learned and slept on something already."""
        copy = self._copies / f"{self.codec}{next(self._numbers)}"
        shutil.copytree(self._template, copy)
        if base is not None:
            with Siesta.open(copy) as learner:
                learner.learn_encoded(*base)
                learner.sleep(updates=8, batch_size=4)
        return copy

    def lesson(self, classes: list[int], seed: int = 0) -> Lesson:
        """A sample of each class in the list, as codes, and its labels."""
        return self._pipeline.encode(list(pictures(classes, seed))), [f"class {number}" for number in classes]


@pytest.fixture(scope="session")
def starts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Start]:
    folder = tmp_path_factory.mktemp("starts")
    return {codec: Start(folder, codec) for codec in ("opq", "raw")}
