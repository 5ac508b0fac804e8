"""A backbone of three small layers."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from siesta.backbones import BackboneSpec
from siesta.backbones.layers import GlobalAveragePool, conv_batch_norm
from siesta.backbones.spec import FROZEN_NORM, IMAGENET

__all__ = ["THREE_LAYERS"]


def _layers(image_size: int) -> Iterator[nn.Module]:
    del image_size  # a convolutional network takes any
    yield nn.Sequential(*conv_batch_norm(3, 16, 3, 2), nn.ReLU())
    yield nn.Sequential(*conv_batch_norm(16, 24, 3, 2), nn.ReLU())
    yield nn.Sequential(*conv_batch_norm(24, 32, 3, 2), nn.ReLU(), GlobalAveragePool())


THREE_LAYERS = BackboneSpec(
    layers=_layers,
    features=32,
    default_cut=1,
    cuts={1: (112, 112, 16), 2: (56, 56, 24)},
    normalization=IMAGENET,
    defaults=FROZEN_NORM,
    last_activation=(-1, "2"),
)
