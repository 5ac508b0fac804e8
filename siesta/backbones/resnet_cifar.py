"""ResNet32 for images of 32 pixels (He et al. 2016, section 4.2), usual in class-incremental learning on CIFAR.

Three stages of five blocks with 16, 32 and 64 channels. Where a block halves the map, its skip connection takes every
second position and fills the new channels with zeros, so that it has no weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from siesta.backbones.spec import FROZEN_NORM, BackboneSpec
from siesta.contracts import Normalization

if TYPE_CHECKING:
    from torch import nn

__all__ = ["CIFAR", "RESNET32"]

CIFAR = Normalization(mean=(129.3, 124.1, 112.4), std=(68.2, 65.4, 70.4))
"""Mean and standard deviation of CIFAR-100's pixels."""

_CHANNELS = (16, 32, 64)
_BLOCKS = 5
_FEATURES = 64


def _layers(_image_size: int) -> Iterator[nn.Module]:
    """Yield the stem, fifteen blocks and the tail."""
    from torch import nn

    from siesta.backbones.layers import GlobalAveragePool, PlainBlock, conv_batch_norm

    yield nn.Sequential(*conv_batch_norm(3, _CHANNELS[0], 3), nn.ReLU())
    inputs = _CHANNELS[0]
    for outputs in _CHANNELS:
        for _ in range(_BLOCKS):
            yield PlainBlock(inputs, outputs)
            inputs = outputs
    yield GlobalAveragePool()


RESNET32 = BackboneSpec(
    layers=_layers,
    features=_FEATURES,
    default_cut=11,  # the stem and two stages
    cuts={11: (112, 112, 32), 14: (56, 56, 64)},
    normalization=CIFAR,
    defaults=replace(FROZEN_NORM, dropout=0.0),
    last_activation=(-2, "activation"),
    image_size=32,
)
