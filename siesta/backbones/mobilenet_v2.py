"""MobileNetV2 (Sandler et al. 2018) as in torchvision: inverted residuals, batch norm, ReLU6."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from siesta.backbones.layers import InvertedResidual, Pool, batch_normed
from siesta.backbones.layouts import Layout, timm_mobilenet, torchvision_mobilenet_v2
from siesta.backbones.recipe import FROZEN_NORM, IMAGENET, Recipe

__all__ = ["RECIPE"]

_FEATURES = 1280

# expansion, output channels, repeats, stride of the first
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def _layers() -> Iterator[nn.Module]:
    """Stem, seventeen blocks, tail."""
    yield nn.Sequential(*batch_normed(3, 32, 3, 2), nn.ReLU6())
    channels = 32
    for expansion, outputs, repeats, first_stride in _STAGES:
        for stride in (first_stride, *[1] * (repeats - 1)):
            yield InvertedResidual(channels, channels * expansion, outputs, 3, stride, batch_normed, nn.ReLU6)
            channels = outputs
    yield nn.Sequential(*batch_normed(channels, _FEATURES), nn.ReLU6(), Pool())


RECIPE = Recipe(
    layers=_layers,
    features=_FEATURES,
    default_cut=8,
    cuts={5: (28, 28, 32), 8: (14, 14, 64), 12: (14, 14, 96), 15: (7, 7, 160)},
    scaling=IMAGENET,
    defaults=FROZEN_NORM,
    last_activation=(-1, "2"),  # then a mean over places
    layouts={
        "torchvision": Layout(torchvision_mobilenet_v2),
        "timm": Layout(timm_mobilenet([repeats for _, _, repeats, _ in _STAGES], ("conv_head", "bn2"))),
    },
)
