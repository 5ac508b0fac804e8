"""ResNet18 (He et al. 2016), with batch norm everywhere or with group norm in its upper part.

`resnet18` is torchvision's network. `resnet18_gn` has group norm (32 groups, the default of Wu & He 2018) and weight
standardisation (Qiao et al. 2019) above the first block of its third stage, which is the paper's cut and the default;
the layers below it keep batch norm at every cut, as in the paper's MobileNetV3-L.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from siesta.backbones.checkpoint_layouts import CheckpointLayout, torchvision_resnet
from siesta.backbones.spec import FROZEN_NORM, GROUP_NORM, IMAGENET, BackboneSpec

if TYPE_CHECKING:
    from torch import nn

__all__ = ["RESNET18", "RESNET18_GN"]

_FEATURES = 512
_DEFAULT_CUT = 6
"""Stem, two stages of two blocks, and the first block of the third stage: 14 x 14 x 256 at 224 px."""

_CHANNELS = (64, 64, 128, 128, 256, 256, 512, 512)  # of each block; a block that widens also halves the feature map


def _layers(norm: str, _image_size: int) -> Iterator[nn.Module]:
    """Yield the stem, eight blocks and the tail; the norms above the default cut are "batch" or "group"."""
    from torch import nn

    from siesta.backbones.layers import BasicBlock, GlobalAveragePool, conv_batch_norm, conv_group_norm

    upper = conv_batch_norm if norm == "batch" else partial(conv_group_norm, norm_groups=32)
    yield nn.Sequential(*conv_batch_norm(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    inputs = 64
    for index, outputs in enumerate(_CHANNELS, start=1):
        yield BasicBlock(inputs, outputs, conv_batch_norm if index < _DEFAULT_CUT else upper)
        inputs = outputs
    yield GlobalAveragePool()


RESNET18 = BackboneSpec(
    layers=partial(_layers, "batch"),
    features=_FEATURES,
    default_cut=_DEFAULT_CUT,
    cuts={5: (28, 28, 128), 6: (14, 14, 256), 8: (7, 7, 512)},
    normalization=IMAGENET,
    defaults=replace(FROZEN_NORM, dropout=0.0),
    last_activation=(-2, "activation"),  # in the last block, followed by global average pooling
    layouts={"torchvision": CheckpointLayout(torchvision_resnet)},
)

RESNET18_GN = replace(
    RESNET18,
    layers=partial(_layers, "group"),
    defaults=replace(GROUP_NORM, dropout=0.0),
)
