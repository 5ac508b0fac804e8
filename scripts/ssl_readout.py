"""What a frozen bottom is worth: top and head trained over it, the paper's measure of pre-training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.backbones import make_backbone
from siesta.budget import one_cycle
from siesta.contracts import Backbone
from siesta.data import Split
from siesta.heap import freed_memory_kept
from siesta.images import read_image
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.loader import Loader
from siesta.pretrain.pictures import copied
from siesta.pretrain.supervised import Supervised

__all__ = ["RANDOM_TOP", "UNTRAINED", "Readout", "Seen", "readout", "seen", "settled"]

UNTRAINED, RANDOM_TOP = "untrained", "random"  # starts that no training made
_CHUNK = 64


@dataclass(frozen=True)
class Readout:
    """How top and head are trained: one cycle of SGD on crops and flips of real features.

    The head is linear over standardised features, where the paper's is a cosine: after minutes of pre-training z hardly
    differs between pictures, and with a cosine of it tops came to answer everything alike.
    """

    backbone: str = "mobilenet_v3_large"
    image_size: int = 64
    epochs: int = 6
    batch_size: int = 32
    rate: float = 0.02


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
def settled(network: Backbone, train: Split, how: Readout, cache: Path) -> Backbone:
    """The network itself, the batch norms of its top brought to know the pictures; its weights and bottom stay.

    Pre-training leaves such norms behind whatever else it does, and is to be judged by what else: so what starts with
    fresh weights gets them, too.
    """
    bottom = Encoder(network.bottom, 0, network.scaling, network.cut).eval()
    for module in network.top.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None  # the mean over all batches
    network.top.train()
    for crops, _ in _epoch(_loader(train, how, cache), 0):
        network.top(bottom(crops))
    network.top.eval()
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
    model = _model(network, classes, seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0, momentum=0.9, weight_decay=1e-5)
    order, found = torch.Generator().manual_seed(seed), []
    for epoch, (latents, labels) in enumerate(pictures.crops):
        batches = torch.split(torch.randperm(len(labels), generator=order), how.batch_size)
        for step, chosen in enumerate(batches):
            fraction = (epoch + step / len(batches)) / how.epochs
            for group in optimizer.param_groups:
                group["lr"] = how.rate * one_cycle(fraction, 1 / (how.epochs * len(batches)))
            loss = F.cross_entropy(model(latents[chosen]), labels[chosen])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        found.append(_accuracy(model, pictures))
    return found


def _model(network: Backbone, classes: int, seed: int) -> nn.Sequential:
    """The top with a fresh head; norms of the network keep their statistics, the head's takes them from each batch."""
    head = nn.Linear(network.features, classes)
    nn.init.normal_(head.weight, std=0.01, generator=torch.Generator().manual_seed(seed))
    nn.init.zeros_(head.bias)
    top = network.top.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return nn.Sequential(top, nn.BatchNorm1d(network.features, affine=False), head)


@torch.no_grad()
def _accuracy(model: nn.Sequential, pictures: Seen) -> float:
    model.eval()
    found = torch.cat([model(some).argmax(dim=1) for some in torch.split(pictures.questions, _CHUNK)])
    model[1].train()
    return 100 * float((found == pictures.answers).float().mean())
