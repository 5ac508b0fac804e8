"""A network of three small layers, pictures whose classes differ in texture only, and quick options of every method."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image
from torch import nn

from siesta.backbones import BACKBONES
from siesta.backbones.layers import GlobalAveragePool, conv_batch_norm
from siesta.backbones.spec import FROZEN_NORM, IMAGENET, BackboneSpec
from siesta.data.options import option_names
from siesta.pretrain import PRETRAINERS
from siesta.pretrain.contract import Pretrainer, Views
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.loop import PretrainStatus
from siesta.pretrain.run import pretrain
from siesta.pretrain.settings import PretrainSettings

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


SMALL = {"prototypes": 12, "hidden": 16, "embedding": 8, "width": 24, "queue": 16}


def quick_options(name: str) -> dict[str, Any]:
    """Return options with which a method is quick: its own above, or small values for those that make others slow."""
    return QUICK.get(name, supported_options(name, SMALL))


def supported_options(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return those of the options that a method has."""
    return {option: value for option, value in options.items() if option in option_names(PRETRAINERS[name])}


def _layers(_image_size: int) -> Iterator[nn.Module]:
    yield nn.Sequential(*conv_batch_norm(3, 16, 5, 2), nn.ReLU())
    yield nn.Sequential(*conv_batch_norm(16, 32, 3, 2), nn.ReLU())
    yield nn.Sequential(*conv_batch_norm(32, FEATURES, 3, 2), nn.ReLU(), GlobalAveragePool())


TINY_SPEC = BackboneSpec(
    layers=_layers,
    features=FEATURES,
    default_cut=1,
    cuts={1: (112, 112, 16), 2: (56, 56, 32)},
    normalization=IMAGENET,
    defaults=FROZEN_NORM,
    last_activation=(-1, "2"),
)


def tiny_encoder() -> Encoder:
    torch.manual_seed(0)
    return Encoder(nn.Sequential(*_layers(32)), FEATURES, IMAGENET, early_layers=1)


def make(name: str, classes: int = 3) -> Any:
    """Return a method on the tiny encoder; the network must be in `BACKBONES`."""
    method_type: type[Pretrainer] = PRETRAINERS[name]
    options = {**quick_options(name), **({"classes": classes} if method_type.needs_labels else {})}
    return method_type(tiny_encoder(), **options)


def quick_settings(name: str = "barlow_twins", **others: Any) -> PretrainSettings:
    """Settings of a run of one epoch on the tiny network."""
    values: dict[str, Any] = {"image_size": 32, "epochs": 1, "batch_size": 16, "options": quick_options(name)}
    return PretrainSettings(name, TINY, **{**values, **others})


def interrupt(settings: PretrainSettings, data: Path, out: Path) -> None:
    """Start a run and kill it in its second step, so that its checkpoint is left."""

    def stop(status: PretrainStatus) -> None:
        if status.pictures == settings.batch_size:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pretrain(settings, data, out, on_step=stop)
    assert out.with_name(f"{out.name}.part").exists()


def views_for(name: str, batch: int = 8, size: int = 32, seed: int = 0) -> Views:
    generator = torch.Generator().manual_seed(seed)
    sides = [crop.side(size) for crop in PRETRAINERS[name].crop_specs]
    crops = [255 * torch.rand(batch, 3, side, side, generator=generator) for side in sides]
    return Views(crops, torch.arange(batch) % 3)


def draw_textures(folder: Path, classes: int = 4, each: int = 12, side: int = 40, seed: int = 0) -> Path:
    """Write pictures `folder/<class>/*`: a class is a noisy pattern of random contrast, phase and frequency."""
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
    """Return vertical, horizontal or crossed stripes, rings, or blobs: (side, side) in -1..1."""
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


def register_tiny() -> None:
    """Register the tiny network in a subprocess; tests use the fixture."""
    BACKBONES[TINY] = TINY_SPEC
