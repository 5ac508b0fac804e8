"""What a frozen bottom is worth: top and head trained over it, the paper's measure of pre-training."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from siesta.backbones import make_backbone
from siesta.backbones.frozen_norm import with_frozen_norms
from siesta.batch import Batch
from siesta.budget import one_cycle
from siesta.contracts import Backbone
from siesta.data import Split
from siesta.errors import BadInput
from siesta.head import Head, cosine_logits
from siesta.heap import freed_memory_kept
from siesta.images import read_image
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.loader import Loader
from siesta.pretrain.pictures import copied
from siesta.pretrain.supervised import Supervised
from siesta.sleep import CosineOutput, SleepSettings, layer_groups, train_step

__all__ = ["Readout", "readout"]

_CHUNK = 64
_CENTRE = 1000  # pictures that z is centred on, as for a new learner


@dataclass(frozen=True)
class Readout:
    """How top and head are trained: as asleep, but on crops and flips of real features.

    That is one cycle, where the paper's read-out falls in steps: started at the full rate, tops that half an hour has
    made come to answer everything alike.
    """

    backbone: str = "mobilenet_v3_large"
    image_size: int = 96
    epochs: int = 6
    batch_size: int = 64
    rate: float | None = None


def readout(
    weights: str | Path, train: Split, test: Split, classes: int, how: Readout, seed: int, cache: Path
) -> Iterator[float]:
    """Top-1 accuracy on the test pictures, in per cent, after each epoch."""
    network = make_backbone(how.backbone, weights=weights)
    bottom = Encoder(network.bottom, 0, network.scaling, network.cut).eval()
    top = with_frozen_norms(network.top.to(memory_format=torch.channels_last))  # type: ignore[call-overload]
    _centre(network, bottom, train, how.image_size)
    output = CosineOutput(_fresh_head(network, classes, seed), torch.device("cpu"))
    settings = SleepSettings.suited(
        network.defaults, batch_size=how.batch_size, rate=how.rate, layer_decay=None, seed=seed
    )
    groups = layer_groups(top, output, settings)
    optimizer = torch.optim.SGD(groups, lr=0.0, momentum=settings.momentum, weight_decay=settings.weight_decay)
    noise, unused = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    loader = _loader(train, how, seed, cache)
    total = how.epochs * loader.epoch_steps
    with freed_memory_kept(), closing(loader.ahead(0)) as batches:
        asked = _latents(bottom, test, how.image_size)
        for step in range(total):
            views = next(batches)
            with torch.no_grad():
                latents = bottom(views.crops[0])
            for group in optimizer.param_groups:
                group["lr"] = group["rate"] * one_cycle(step / total, 1 / total)
            batch = Batch.of(latents, views.labels, None, unused)
            loss, _ = train_step(top, output, optimizer, batch, settings.dropout, noise)
            if not math.isfinite(loss):
                raise BadInput(f"the read-out of {weights} diverged: give it a lower rate than {settings.rate}")
            if (step + 1) % loader.epoch_steps == 0:
                yield _accuracy(top, output, asked, test)


@torch.no_grad()
def _centre(network: Backbone, bottom: Encoder, train: Split, image_size: int) -> None:
    """Lets z be seen from its mean, as a learner's is: after short pre-training all z are much alike."""
    some = train.pick(np.random.default_rng(0).permutation(len(train))[:_CENTRE])
    mean = torch.cat([network.top(latents) for latents in _latents(bottom, some, image_size)]).mean(dim=0)
    network.top[-1].load_state_dict({"centre": mean})


def _fresh_head(network: Backbone, classes: int, seed: int) -> Head:
    """Random directions."""
    directions = torch.randn(classes, network.features, generator=torch.Generator().manual_seed(seed))
    return Head(torch.arange(classes), directions, torch.zeros(classes, dtype=torch.int64), network.defaults.scale)


def _loader(train: Split, how: Readout, seed: int, cache: Path) -> Loader:
    known = {Path(str(picture)): int(label) for picture, label in zip(train.pictures, train.labels, strict=True)}
    pictures = copied(list(known), how.image_size, cache)
    labels = np.array([known[file] for file in pictures.files])
    return Loader(pictures, labels, Supervised.plan, how.image_size, how.batch_size, seed)


@torch.no_grad()
def _latents(bottom: Encoder, test: Split, image_size: int) -> list[Tensor]:
    """Latents of all test pictures, chunk by chunk."""
    found = []
    for start in range(0, len(test), _CHUNK):
        pixels = np.stack([read_image(picture, image_size) for picture in test.pictures[start : start + _CHUNK]])
        found.append(bottom(torch.from_numpy(pixels).permute(0, 3, 1, 2).float()))
    return found


@torch.no_grad()
def _accuracy(top: nn.Sequential, output: CosineOutput, latents: list[Tensor], test: Split) -> float:
    found = torch.cat([cosine_logits(top(some), output.vectors, 1.0).argmax(dim=1) for some in latents])
    return 100 * float((found == torch.from_numpy(test.labels)).float().mean())
