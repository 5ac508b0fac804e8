"""What a frozen bottom is worth: top and head trained over it, the paper's measure of pre-training."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from siesta.backbones import RANDOM, make_backbone
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

__all__ = ["Readout", "Seen", "readout", "seen", "untrained"]

_CHUNK = 64
_CENTRE = 1000  # samples that z is centred on, as for a new learner


@dataclass(frozen=True)
class Readout:
    """How top and head are trained: as asleep, but on crops and flips of real features.

    That is one cycle, where the paper's read-out falls in steps: started at the full rate, tops that were trained for
    minutes come to answer everything alike.
    """

    backbone: str = "mobilenet_v3_large"
    image_size: int = 64
    epochs: int = 2
    batch_size: int = 64
    rate: float | None = None


@dataclass(frozen=True)
class Seen:
    """What a frozen bottom makes of the pictures; every seed learns from the same crops, in an order of its own.

    Attributes:
        crops: For each epoch, latents (N, d, r, s) and labels (N,) of one crop of each training picture.
        questions: Latents of the test pictures, (M, d, r, s).
        answers: Their labels, (M,).
    """

    crops: list[tuple[Tensor, Tensor]]
    questions: Tensor
    answers: Tensor


def seen(weights: Path, train: Split, test: Split, how: Readout, cache: Path) -> Seen:
    """Everything that goes through the bottom, once."""
    network = make_backbone(how.backbone, weights=weights)
    bottom = Encoder(network.bottom, 0, network.scaling, network.cut).eval()
    return Seen(list(_crops(bottom, train, how, cache)), _questions(bottom, test, how), torch.from_numpy(test.labels))


@torch.no_grad()
def untrained(train: Split, how: Readout, cache: Path) -> Backbone:
    """The network at step 0, uncut: fresh weights, but batch norms that know the pictures.

    Pre-training leaves such norms behind whatever else it does, so without them it would be said to have learned.
    """
    network = make_backbone(how.backbone, 0, weights=RANDOM)
    encoder = Encoder(network.top, 0, network.scaling, 0).train()
    for module in encoder.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # the mean over all batches
    for crops, _ in _epoch(_loader(train, how, cache), 0):
        encoder(crops)
    return network


def _loader(train: Split, how: Readout, cache: Path) -> Loader:
    known = {Path(str(picture)): int(label) for picture, label in zip(train.pictures, train.labels, strict=True)}
    pictures = copied(list(known), how.image_size, cache)
    labels = np.array([known[file] for file in pictures.files])
    return Loader(pictures, labels, Supervised.plan, how.image_size, how.batch_size, seed=0)


def _epoch(loader: Loader, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """A crop of each picture and its label, in batches."""
    with closing(loader.ahead(epoch * loader.epoch_steps)) as batches:
        for views in islice(batches, loader.epoch_steps):
            yield views.crops[0], views.labels


@torch.no_grad()
def _crops(bottom: Encoder, train: Split, how: Readout, cache: Path) -> Iterator[tuple[Tensor, Tensor]]:
    loader = _loader(train, how, cache)
    for epoch in range(how.epochs):
        latents, labels = zip(*((bottom(crops), labels) for crops, labels in _epoch(loader, epoch)), strict=True)
        yield torch.cat(latents), torch.cat(labels)


@torch.no_grad()
def _questions(bottom: Encoder, test: Split, how: Readout) -> Tensor:
    found = []
    for start in range(0, len(test), _CHUNK):
        pixels = np.stack([read_image(picture, how.image_size) for picture in test.pictures[start : start + _CHUNK]])
        found.append(bottom(torch.from_numpy(pixels).permute(0, 3, 1, 2).float()))
    return torch.cat(found)


@freed_memory_kept()
def readout(weights: Path, pictures: Seen, classes: int, how: Readout, seed: int) -> list[float]:
    """Top-1 accuracy on the test pictures, in per cent, after each epoch."""
    network = make_backbone(how.backbone, weights=weights)
    _centre(network, pictures.crops[0][0][:_CENTRE])
    top = with_frozen_norms(network.top.to(memory_format=torch.channels_last))  # type: ignore[call-overload]
    output = CosineOutput(_fresh_head(network, classes, seed), torch.device("cpu"))
    settings = SleepSettings.suited(
        network.defaults, batch_size=how.batch_size, rate=how.rate, layer_decay=None, seed=seed
    )
    groups = layer_groups(top, output, settings)
    optimizer = torch.optim.SGD(groups, lr=0.0, momentum=settings.momentum, weight_decay=settings.weight_decay)
    noise, rng = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    found = []
    for epoch, (latents, labels) in enumerate(pictures.crops):
        batches = torch.split(torch.randperm(len(labels), generator=noise), how.batch_size)
        for step, chosen in enumerate(batches):
            fraction = (epoch + step / len(batches)) / how.epochs
            for group in optimizer.param_groups:
                group["lr"] = group["rate"] * one_cycle(fraction, 1 / (how.epochs * len(batches)))
            batch = Batch.of(latents[chosen], labels[chosen], None, rng)
            loss, _ = train_step(top, output, optimizer, batch, settings.dropout, noise)
            if not math.isfinite(loss):
                raise BadInput(f"the read-out of {weights} diverged: give it a lower rate than {settings.rate}")
        found.append(_accuracy(top, output, pictures))
    return found


@torch.no_grad()
def _centre(network: Backbone, latents: Tensor) -> None:
    """Lets z be seen from its mean, as a learner's is: after short pre-training all z are much alike."""
    network.top[-1].load_state_dict({"centre": network.top(latents).mean(dim=0)})


def _fresh_head(network: Backbone, classes: int, seed: int) -> Head:
    """Random directions."""
    directions = torch.randn(classes, network.features, generator=torch.Generator().manual_seed(seed))
    return Head(torch.arange(classes), directions, torch.zeros(classes, dtype=torch.int64), network.defaults.scale)


@torch.no_grad()
def _accuracy(top: nn.Sequential, output: CosineOutput, pictures: Seen) -> float:
    chunks = torch.split(pictures.questions, _CHUNK)
    found = torch.cat([cosine_logits(top(some), output.vectors, 1.0).argmax(dim=1) for some in chunks])
    return 100 * float((found == pictures.answers).float().mean())
