"""Learners of a small network that methods start from: 32 px images, one for each codec, made once and copied."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from siesta import Siesta
from siesta.codecs import CODECS, DEFAULT_CODEC
from siesta.contracts import Codes
from siesta.methods import METHODS
from tests.methods.tiny import TINY, register_tiny
from tests.small import create_small, register_small

COLOURS = np.array([[200 * (number >> bit & 1) for bit in range(3)] for number in (1, 6, 2, 5, 0, 7, 3, 4)])
"""The colour of each class; images are noise around it."""

Samples = tuple[Codes, list[str]]
"""Codes and labels."""


SMALL = {
    "updates": 8,
    "epochs": 2,
    "first_epochs": 2,
    "classifier_epochs": 1,
    "tuning_epochs": 1,
    "compression_epochs": 1,
    "batch_size": 4,
    "rehearsals": 3,
    "exemplars": 6,
}


def small_settings(name: str, **values: int) -> dict[str, int]:
    """Return values with which a method is quick, for those of its settings that usually make it slow."""
    spec = METHODS[name]
    fields = set(spec.settings_class.model_fields) - set(spec.preset)
    return {field: value for field, value in {**SMALL, **values}.items() if field in fields}


def images(classes: list[int], seed: int = 0) -> npt.NDArray[np.uint8]:
    """Return an image for each class in the list, (B, 32, 32, 3)."""
    rng = np.random.default_rng((seed, len(classes)))
    return np.stack([COLOURS[number] + rng.integers(0, 56, (32, 32, 3)) for number in classes]).astype(np.uint8)


class Template:
    """A learner folder to copy, and samples encoded by its learner."""

    def __init__(self, folder: Path, name: str, **options: Any) -> None:
        self._empty = folder / f"{name}.siesta"
        self._copies = folder / f"{name}-copies"
        self._copies.mkdir()
        self._numbers = itertools.count()
        self._trained: dict[bytes, Path] = {}
        with create_small(self._empty, **options) as learner:
            self._pipeline = learner.pipeline

    def folder(self, base: Samples | None = None) -> Path:
        """Return a new copy; with `base` the learner has learned these samples and slept."""
        return self._copy(self._empty if base is None else self._trained_on(base))

    def samples(self, classes: list[int], seed: int = 0) -> Samples:
        """Return the code and the label of an image for each class in the list."""
        return self._pipeline.encode(list(images(classes, seed))), [f"class {number}" for number in classes]

    def _trained_on(self, base: Samples) -> Path:
        codes, labels = base
        key = codes.tobytes() + "\n".join(labels).encode()
        if key not in self._trained:
            self._trained[key] = self._copy(self._empty)
            with Siesta.open(self._trained[key]) as learner:
                learner.learn_encoded(codes, labels)
                learner.sleep(updates=8, batch_size=4)
        return self._trained[key]

    def _copy(self, folder: Path) -> Path:
        return Path(shutil.copytree(folder, self._copies / str(next(self._numbers))))


@pytest.fixture(autouse=True, scope="package")
def _small_networks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        register_small(patch)
        register_tiny()
        yield


@pytest.fixture(scope="package")
def templates(_small_networks: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Template]:
    """A template for each codec, and one with a tiny network for methods that train all of it many times."""
    folder = tmp_path_factory.mktemp("templates")
    tiny = Template(folder, TINY, codec="raw", memory="1MB", backbone=TINY, weights="random")
    return {codec: Template(folder, codec, codec=codec, **_options(codec)) for codec in CODECS} | {TINY: tiny}


def _options(codec: str) -> dict[str, Any]:
    if codec == DEFAULT_CODEC:
        return {"memory": "20KB"}
    return {"memory": "1MB", "base": list(images([*range(8)])) if CODECS[codec].needs_fit else None}


def template_name(method: str) -> str:
    """Return the key of the template that a method's tests start from."""
    return TINY if METHODS[method].collects else METHODS[method].codec
