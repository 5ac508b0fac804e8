"""MobileNetV3-Large (Howard et al. 2019), as the paper changes it and as it was published.

`mobilenet_v3_large` is the paper's network (its appendix on MobileNetV3-L): GELU everywhere, inside squeeze-excitation
too, whose gate is a hard sigmoid; batch norm in layers 0..7, group norm with weight standardisation (Wu & He 2018,
Qiao et al. 2019) above them. Those eight layers are the paper's bottom; they keep their batch norm at every cut, so
that one checkpoint serves all cuts. At cuts 3 and 5 the top therefore has a few batch norms, frozen asleep.

`mobilenet_v3_large_plain` has batch norm, ReLU and hard-swish: the network that public ImageNet weights are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from torch import nn

from siesta.backbones.layers import ConvNorm, Gelu, InvertedResidual, Pool, SqueezeExcite, batch_normed, group_normed
from siesta.backbones.layouts import Layout, timm_mobilenet, torchvision_mobilenet_v3
from siesta.backbones.recipe import FROZEN_NORM, GROUP_NORM, IMAGENET, Recipe

__all__ = ["MODIFIED", "PLAIN"]

_FEATURES = 1280
_BATCH_NORMED = 8  # layers of the paper's network that keep batch norm

# kernel, expanded channels, output channels, squeeze-excitation, stride
_BLOCKS = (
    (3, 16, 16, False, 1),
    (3, 64, 24, False, 2),
    (3, 72, 24, False, 1),
    (5, 72, 40, True, 2),
    (5, 120, 40, True, 1),
    (5, 120, 40, True, 1),
    (3, 240, 80, False, 2),
    (3, 200, 80, False, 1),
    (3, 184, 80, False, 1),
    (3, 184, 80, False, 1),
    (3, 480, 112, True, 1),
    (3, 672, 112, True, 1),
    (5, 672, 160, True, 2),
    (5, 960, 160, True, 1),
    (5, 960, 160, True, 1),
)

_batch_normed = partial(batch_normed, eps=1e-3, momentum=0.01)
_group_normed = partial(group_normed, norm_groups=8, eps=1e-3)


def _squeezed(channels: int) -> int:
    """A quarter of the channels, to a multiple of 8 that is not more than a tenth lower."""
    quarter = channels // 4
    rounded = max(8, (quarter + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * quarter else rounded + 8


def _layers(
    conv_norm: Callable[[int], ConvNorm],
    activation: Callable[[int], type[nn.Module]],
    squeeze_activation: type[nn.Module],
) -> Iterator[nn.Module]:
    """Stem, fifteen blocks, tail; norm and activation are chosen by layer."""
    yield nn.Sequential(*conv_norm(0)(3, 16, 3, 2), activation(0)())
    channels = 16
    for index, (kernel, wide, outputs, squeezes, stride) in enumerate(_BLOCKS, start=1):
        squeeze = SqueezeExcite(wide, _squeezed(wide), squeeze_activation) if squeezes else None
        yield InvertedResidual(channels, wide, outputs, kernel, stride, conv_norm(index), activation(index), squeeze)
        channels = outputs
    last = len(_BLOCKS) + 1
    wide, act = 6 * channels, activation(last)
    yield nn.Sequential(*conv_norm(last)(channels, wide), act(), Pool(), nn.Linear(wide, _FEATURES), act())


def _modified() -> Iterator[nn.Module]:
    return _layers(lambda index: _batch_normed if index < _BATCH_NORMED else _group_normed, lambda _: Gelu, Gelu)


def _plain() -> Iterator[nn.Module]:
    return _layers(lambda _: _batch_normed, lambda index: nn.ReLU if 1 <= index <= 6 else nn.Hardswish, nn.ReLU)


PLAIN = Recipe(
    layers=_plain,
    features=_FEATURES,
    default_cut=8,
    cuts={3: (56, 56, 24), 5: (28, 28, 40), 8: (14, 14, 80), 14: (7, 7, 160)},
    scaling=IMAGENET,
    defaults=FROZEN_NORM,
    last_activation=(-1, "5"),
    layouts={
        "torchvision": Layout(torchvision_mobilenet_v3),
        "timm": Layout(
            timm_mobilenet((1, 2, 3, 4, 2, 3), ("blocks.6.0.conv", "blocks.6.0.bn1", "conv_head")), norm_eps=1e-5
        ),
    },
)

MODIFIED = replace(
    PLAIN, layers=_modified, defaults=GROUP_NORM, layouts={"reference": Layout(torchvision_mobilenet_v3)}
)
