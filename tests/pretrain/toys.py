"""A network of three small layers, pictures that a colour does not tell apart, and quick options for every method."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import nn

from siesta.backbones import BACKBONES
from siesta.backbones.layers import Pool, batch_normed
from siesta.backbones.recipe import FROZEN_NORM, IMAGENET, Recipe
from siesta.pretrain import PRETRAINERS
from siesta.pretrain.contract import Pretrainer, Views
from siesta.pretrain.encoder import Encoder

TINY = "tiny"
FEATURES = 32

QUICK: dict[str, dict[str, Any]] = {
    "swav": {"prototypes": 12, "hidden": 16, "embedding": 8, "queue": 16, "queue_waits": 0},
    "barlow_twins": {"width": 24},
    "mira": {"prototypes": 12, "hidden": 16, "embedding": 8},
    "seed": {"teacher": TINY, "teacher_weights": "random", "queue": 32},
    "mira+barlow_twins": {"prototypes": 12, "hidden": 16, "width": 24},
    "swav+essl": {"prototypes": 12, "hidden": 16, "queue": 16},
    "swav+seal": {"prototypes": 12, "hidden": 16, "queue": 16, "generations": 2},
    "supervised": {},
}


def _layers() -> Iterator[nn.Module]:
    yield nn.Sequential(*batch_normed(3, 16, 5, 2), nn.ReLU())
    yield nn.Sequential(*batch_normed(16, 32, 3, 2), nn.ReLU())
    yield nn.Sequential(*batch_normed(32, FEATURES, 3, 2), nn.ReLU(), Pool())


RECIPE = Recipe(
    layers=_layers,
    features=FEATURES,
    default_cut=1,
    cuts={1: (112, 112, 16), 2: (56, 56, 32)},
    scaling=IMAGENET,
    defaults=FROZEN_NORM,
    last_activation=(-1, "2"),
)


def tiny_encoder() -> Encoder:
    torch.manual_seed(0)
    return Encoder(nn.Sequential(*_layers()), FEATURES, IMAGENET, early=1)


def make(name: str, classes: int = 3) -> Any:
    """A method on a tiny encoder; the backbone of that name must be known."""
    kind: type[Pretrainer] = PRETRAINERS[name]
    options = {**QUICK[name], **({"classes": classes} if kind.labelled else {})}
    return kind(tiny_encoder(), **options)


def views_for(name: str, batch: int = 8, size: int = 32, seed: int = 0) -> Views:
    generator = torch.Generator().manual_seed(seed)
    sides = [crop.side(size) for crop in PRETRAINERS[name].plan]
    crops = [255 * torch.rand(batch, 3, side, side, generator=generator) for side in sides]
    return Views(crops, torch.arange(batch) % 3)


def draw_textures(folder: Path, classes: int = 4, each: int = 12, side: int = 40, seed: int = 0) -> Path:
    """Pictures as `folder/<class>/*`: a class is a pattern, in noise, of any contrast, phase and size."""
    rng = np.random.default_rng(seed)
    for label in range(classes):
        (folder / str(label)).mkdir(parents=True)
        for number in range(each):
            pattern = _pattern(label, side, rng)[:, :, None] / 2 + 0.5
            dark, bright = rng.uniform((0, 140), (110, 255))
            picture = dark + (bright - dark) * pattern + rng.normal(0, 25, (side, side, 3))
            Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(folder / str(label) / f"{number}.png")
    return folder


def _pattern(label: int, side: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Stripes upright, lying or both, rings, or blots: (side, side) in -1..1."""
    rows, columns = np.mgrid[:side, :side] - rng.uniform(0, side, (2, 1, 1))
    turn = 2 * np.pi / rng.uniform(6, 9)
    if label < 4:
        patterns = (
            np.sin(turn * columns),
            np.sin(turn * rows),
            np.sin(turn * columns) * np.sin(turn * rows),
            np.sin(turn * np.hypot(rows, columns)),
        )
        return np.asarray(patterns[label])
    small = Image.fromarray(rng.normal(size=(side // 6, side // 6)))
    return np.asarray(np.tanh(2 * np.asarray(small.resize((side, side), Image.Resampling.BICUBIC))))


def know_tiny() -> None:
    """For processes of their own; tests use the fixture."""
    BACKBONES[TINY] = RECIPE
