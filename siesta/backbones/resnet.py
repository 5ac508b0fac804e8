"""ResNet18 (He et al. 2016), with batch norm throughout or with group norm in its upper part.

`resnet18` is torchvision's network. `resnet18_gn` has group norm (32 groups, the default of Wu & He 2018) and weight
standardisation (Qiao et al. 2019) above the first block of its third stage, which is the paper's cut and the default;
the layers below keep batch norm at every cut, as in the paper's MobileNetV3-L.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from torch import Tensor, nn

from siesta.backbones.layers import ConvNorm, Pool, batch_normed, group_normed
from siesta.backbones.layouts import Layout, torchvision_resnet
from siesta.backbones.recipe import FROZEN_NORM, GROUP_NORM, IMAGENET, Recipe

__all__ = ["RESNET18", "RESNET18_GN", "BasicBlock"]

_FEATURES = 512
_DEFAULT_CUT = 6
"""Stem, two stages of two blocks, and the first block of the third: 14 x 14 x 256 at 224 px."""

_CHANNELS = (64, 64, 128, 128, 256, 256, 512, 512)  # of each block; one that widens halves the map


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions, added to the input or to its projection."""

    def __init__(self, inputs: int, outputs: int, conv_norm: ConvNorm) -> None:
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.body = nn.Sequential(*conv_norm(inputs, outputs, 3, stride), nn.ReLU(), *conv_norm(outputs, outputs, 3))
        self.shortcut = nn.Identity() if stride == 1 else nn.Sequential(*conv_norm(inputs, outputs, 1, stride))
        self.activation = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C', H / stride, W / stride)."""
        out: Tensor = self.activation(self.body(x) + self.shortcut(x))
        return out


def _layers(upper: ConvNorm) -> Iterator[nn.Module]:
    """Stem, eight blocks, tail; `upper` norms the layers above the default cut."""
    yield nn.Sequential(*batch_normed(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    inputs = 64
    for index, outputs in enumerate(_CHANNELS, start=1):
        yield BasicBlock(inputs, outputs, batch_normed if index < _DEFAULT_CUT else upper)
        inputs = outputs
    yield Pool()


RESNET18 = Recipe(
    layers=partial(_layers, batch_normed),
    features=_FEATURES,
    default_cut=_DEFAULT_CUT,
    cuts={5: (28, 28, 128), 6: (14, 14, 256)},
    scaling=IMAGENET,
    defaults=replace(FROZEN_NORM, dropout=0.0),
    last_activation=(-2, "activation"),  # of the last block, then a mean over places
    layouts={"torchvision": Layout(torchvision_resnet)},
)

RESNET18_GN = replace(
    RESNET18,
    layers=partial(_layers, partial(group_normed, norm_groups=32)),
    defaults=replace(GROUP_NORM, dropout=0.0),
)
