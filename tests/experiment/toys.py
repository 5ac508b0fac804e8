"""Toy data in the paper's layouts: few classes, and just enough base pictures to fit a codec on."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from siesta.files import cache_folder
from tests.data.layouts import write

BASE_EACH = 15
NEW_EACH = 3
TEST_EACH = 1
CLASSES = ("ant", "bee", "cat")  # two base classes and one that comes later


def picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(list("/".join(path.parts[-3:]).encode()))
    Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(path, "JPEG")


def _each(label: str) -> int:
    return NEW_EACH if label == CLASSES[-1] else BASE_EACH


def imagenet(root: Path) -> Path:
    for label in CLASSES:
        for part, each in (("train", _each(label)), ("val", TEST_EACH)):
            for number in range(each):
                picture(root / part / label / f"{number}.JPEG")
    write(root / "imagenet_class_order.txt", *CLASSES)
    return root


def cub200(root: Path) -> Path:
    for label in CLASSES[1:]:
        for part, each in (("train", NEW_EACH), ("test", TEST_EACH)):
            for number in range(each):
                picture(root / part / label / f"{part}_{number}.jpg")
    return root


def places365(root: Path) -> Path:
    """The official lists."""
    train = [f"/{label[0]}/{label}/{n}.jpg {c}" for c, label in enumerate(CLASSES[1:]) for n in range(NEW_EACH)]
    val = [f"val_{number}.jpg {number}" for number in range(2)]
    for line in train:
        picture(root / "data_256" / line.split()[0][1:])
    for line in val:
        picture(root / "val_256" / line.split()[0])
    write(root / "categories_places365.txt", *(f"/{label[0]}/{label} {c}" for c, label in enumerate(CLASSES[1:])))
    write(root / "places365_train_standard.txt", *train)
    write(root / "places365_val.txt", *val)
    return root


def places365_lt(root: Path) -> Path:
    """Classes come shuffled here, so all of them are large enough to be base classes."""
    for part, numbers in (("train", range(BASE_EACH)), ("val", range(BASE_EACH, BASE_EACH + TEST_EACH))):
        lines = [f"train/{label}/{n}.jpg {c}" for c, label in enumerate(CLASSES) for n in numbers]
        for line in lines:
            picture(root / line.split()[0])
        write(root / f"Places_LT_{part}.txt", *lines)
    return root


def use_torch_engine(patch: pytest.MonkeyPatch) -> None:
    """Run frozen networks in torch wherever an engine is chosen: exporting graphs of toy networks takes too long."""
    for name, module in list(sys.modules.items()):
        if name.startswith("siesta.") and name != "siesta.engines" and hasattr(module, "choose_engine"):
            patch.setattr(module, "choose_engine", lambda *_: "torch")


def make_cache(folder: Path) -> Path:
    """Make a folder for `XDG_CACHE_HOME` that has no codes, but the user's graphs: exporting them takes seconds."""
    graphs = cache_folder("graphs")
    graphs.mkdir(parents=True, exist_ok=True)
    (folder / "siesta").mkdir(parents=True)
    (folder / "siesta" / "graphs").symlink_to(graphs)
    return folder


def make_all(root: Path) -> Mapping[str, Path]:
    """Every data set that the paper's configs name, below `root` under its name."""
    return {make.__name__: make(root / make.__name__) for make in (imagenet, cub200, places365, places365_lt)}
