"""Evaluation of a frozen bottom, as in the paper: train top and head over it and measure their accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.backbones import make_backbone
from siesta.backbones.layers import channels_last
from siesta.contracts import Backbone
from siesta.data import Split
from siesta.images import read_image
from siesta.malloc import keep_freed_memory
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.loader import CropLoader
from siesta.pretrain.picture_cache import cache_pictures
from siesta.pretrain.supervised import Supervised
from siesta.sleep.schedule import one_cycle

__all__ = [
    "RANDOM_TOP",
    "UNTRAINED",
    "Latents",
    "ReadoutSettings",
    "encode_pictures",
    "readout_accuracies",
    "recalibrate_norms",
]

UNTRAINED = "untrained"
RANDOM_TOP = "random"
"""Names in results of two initial weights that no method trained: a random network, and SwAV's bottom alone."""

_BATCH_SIZE = 64


@dataclass(frozen=True)
class ReadoutSettings:
    """How top and head are trained: one cycle of SGD on latents of crops and flips.

    The head is linear over standardised features, where the paper's is a cosine head: after minutes of pre-training z
    hardly differs between pictures, and with a cosine head some tops predicted one class for all pictures.
    """

    backbone: str = "mobilenet_v3_large"
    image_size: int = 64
    epochs: int = 6
    batch_size: int = 32
    lr: float = 0.02

    def row_config(self) -> dict[str, Any]:
        """Return the settings with the keys of result rows."""
        return {
            "backbone": self.backbone,
            "image_size": self.image_size,
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "rate": self.lr,
        }


@dataclass(frozen=True)
class Latents:
    """Latents of all pictures from a frozen bottom; every seed trains on the same crops, in an order of its own.

    Attributes:
        train: For each epoch, latents (N, d, r, s) and labels (N,) of one crop of each training picture.
        test: Latents of the test pictures, (M, d, r, s).
        test_labels: Labels of the test pictures, (M,).
    """

    train: list[tuple[Tensor, Tensor]]
    test: Tensor
    test_labels: Tensor


def encode_pictures(weights: Path, train: Split, test: Split, settings: ReadoutSettings, cache: Path) -> Latents:
    """Return the latents of all pictures from the bottom of a file of weights."""
    network = make_backbone(settings.backbone, weights=weights)
    bottom = Encoder(network.bottom, 0, network.normalization, network.cut).eval()
    test_labels = torch.from_numpy(test.labels)
    return Latents(
        list(_train_latents(bottom, train, settings, cache)), _test_latents(bottom, test, settings), test_labels
    )


@torch.no_grad()
def recalibrate_norms(network: Backbone, train: Split, settings: ReadoutSettings, cache: Path) -> Backbone:
    """Return the network with the batch-norm statistics of its top measured on the pictures, all weights unchanged.

    Pre-training sets these statistics as a side effect; with them, random weights are a fair comparison.
    """
    bottom = Encoder(network.bottom, 0, network.normalization, network.cut).eval()
    for module in network.top.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None  # the mean over all batches
    network.top.train()
    for crops, _ in _epoch_batches(_loader(train, settings, cache), 0):
        network.top(bottom(crops))
    network.top.eval()
    return network


def _loader(train: Split, settings: ReadoutSettings, cache: Path) -> CropLoader:
    label_of = {Path(str(picture)): int(label) for picture, label in zip(train.pictures, train.labels, strict=True)}
    pictures = cache_pictures(list(label_of), settings.image_size, cache)
    labels = np.array([label_of[file] for file in pictures.files])
    return CropLoader(pictures, labels, Supervised.crop_specs, settings.image_size, settings.batch_size, seed=0)


def _epoch_batches(loader: CropLoader, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of one crop of each picture and its label."""
    with closing(loader.prefetch(epoch * loader.epoch_steps)) as batches:
        for views in islice(batches, loader.epoch_steps):
            yield views.crops[0], views.labels


@torch.no_grad()
def _train_latents(
    bottom: Encoder, train: Split, settings: ReadoutSettings, cache: Path
) -> Iterator[tuple[Tensor, Tensor]]:
    loader = _loader(train, settings, cache)
    for epoch in range(settings.epochs):
        batches = [(bottom(crops), labels) for crops, labels in _epoch_batches(loader, epoch)]
        latents, labels = zip(*batches, strict=True)
        yield torch.cat(latents), torch.cat(labels)


@torch.no_grad()
def _test_latents(bottom: Encoder, test: Split, settings: ReadoutSettings) -> Tensor:
    latents = []
    for start in range(0, len(test), _BATCH_SIZE):
        pictures = test.pictures[start : start + _BATCH_SIZE]
        pixels = np.stack([read_image(picture, settings.image_size) for picture in pictures])
        latents.append(bottom(torch.from_numpy(pixels).permute(0, 3, 1, 2).float()))
    return torch.cat(latents)


@keep_freed_memory()
def readout_accuracies(
    weights: Path, latents: Latents, classes: int, settings: ReadoutSettings, seed: int
) -> list[float]:
    """Train top and head and return the top-1 accuracy on the test pictures, in per cent, after each epoch."""
    network = make_backbone(settings.backbone, weights=weights)
    model = _model(network, classes, seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0, momentum=0.9, weight_decay=1e-5)
    order = torch.Generator().manual_seed(seed)
    accuracies = []
    for epoch, (inputs, labels) in enumerate(latents.train):
        batches = torch.split(torch.randperm(len(labels), generator=order), settings.batch_size)
        for step, indices in enumerate(batches):
            fraction = (epoch + step / len(batches)) / settings.epochs
            for group in optimizer.param_groups:
                group["lr"] = settings.lr * one_cycle(fraction, 1 / (settings.epochs * len(batches)))
            loss = F.cross_entropy(model(inputs[indices]), labels[indices])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        accuracies.append(_accuracy(model, latents))
    return accuracies


def _model(network: Backbone, classes: int, seed: int) -> nn.Sequential:
    """Return the top with a new head; norms of the top use their running statistics, that of the head the batch's."""
    head = nn.Linear(network.features, classes)
    nn.init.normal_(head.weight, std=0.01, generator=torch.Generator().manual_seed(seed))
    nn.init.zeros_(head.bias)
    return nn.Sequential(channels_last(network.top), nn.BatchNorm1d(network.features, affine=False), head)


@torch.no_grad()
def _accuracy(model: nn.Sequential, latents: Latents) -> float:
    model.eval()
    predictions = torch.cat([model(batch).argmax(dim=1) for batch in torch.split(latents.test, _BATCH_SIZE)])
    model[1].train()
    return 100 * float((predictions == latents.test_labels).float().mean())
