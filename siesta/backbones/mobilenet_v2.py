"""MobileNetV2 (Sandler et al. 2018) as in torchvision: inverted residuals, batch norm, ReLU6."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from siesta.backbones.checkpoint_layouts import CheckpointLayout, timm_mobilenet, torchvision_mobilenet_v2
from siesta.backbones.spec import FROZEN_NORM, IMAGENET, BackboneSpec

if TYPE_CHECKING:
    from torch import nn

__all__ = ["MOBILENET_V2"]

_FEATURES = 1280

# expansion, output channels, repeats, stride of the first block
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def _layers(_image_size: int) -> Iterator[nn.Module]:
    """Yield the stem, seventeen blocks and the tail."""
    from torch import nn

    from siesta.backbones.layers import GlobalAveragePool, InvertedResidual, conv_batch_norm

    yield nn.Sequential(*conv_batch_norm(3, 32, 3, 2), nn.ReLU6())
    channels = 32
    for expansion, outputs, repeats, first_stride in _STAGES:
        for stride in (first_stride, *[1] * (repeats - 1)):
            yield InvertedResidual(channels, channels * expansion, outputs, 3, stride, conv_batch_norm, nn.ReLU6)
            channels = outputs
    yield nn.Sequential(*conv_batch_norm(channels, _FEATURES), nn.ReLU6(), GlobalAveragePool())


MOBILENET_V2 = BackboneSpec(
    layers=_layers,
    features=_FEATURES,
    default_cut=8,
    cuts={5: (28, 28, 32), 8: (14, 14, 64), 12: (14, 14, 96), 15: (7, 7, 160)},
    normalization=IMAGENET,
    defaults=FROZEN_NORM,
    last_activation=(-1, "2"),  # followed by global average pooling
    layouts={
        "torchvision": CheckpointLayout(torchvision_mobilenet_v2),
        "timm": CheckpointLayout(timm_mobilenet([repeats for _, _, repeats, _ in _STAGES], ("conv_head", "bn2"))),
    },
)
