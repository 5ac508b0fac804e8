"""MobileNetV3-Large (Howard et al. 2019), as the paper changes it and as it was published.

`mobilenet_v3_large` is the paper's network (its appendix on MobileNetV3-L): GELU everywhere, also inside
squeeze-and-excitation, whose gate is a hard sigmoid; batch norm in layers 0..7, and group norm with weight
standardisation (Wu & He 2018, Qiao et al. 2019) above them. Those eight layers are the paper's bottom. They keep batch
norm at every cut, so that one checkpoint fits all cuts; at cuts 3 and 5 the top has a few batch norms, which are frozen
during sleep.

`mobilenet_v3_large_plain` has batch norm, ReLU and hard-swish. Public ImageNet weights fit this network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from siesta.backbones.checkpoint_layouts import CheckpointLayout, timm_mobilenet, torchvision_mobilenet_v3
from siesta.backbones.spec import FROZEN_NORM, GROUP_NORM, IMAGENET, BackboneSpec

if TYPE_CHECKING:
    from torch import nn

    from siesta.backbones.layers import ConvNorm

__all__ = ["MOBILENET_V3_LARGE", "MOBILENET_V3_LARGE_PLAIN"]

_FEATURES = 1280
_BATCH_NORM_LAYERS = 8  # number of low layers of the paper's network with batch norm

# kernel, expanded channels, output channels, squeeze-and-excitation, stride
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


def _squeezed(channels: int) -> int:
    """Return a quarter of the channels, rounded to a multiple of 8 that is at most 10 % lower."""
    quarter = channels // 4
    rounded = max(8, (quarter + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * quarter else rounded + 8


def _layers(
    conv_norm: Callable[[int], ConvNorm],
    activation: Callable[[int], type[nn.Module]],
    squeeze_activation: type[nn.Module],
) -> Iterator[nn.Module]:
    """Yield the stem, fifteen blocks and the tail; norm and activation depend on the layer's index."""
    from torch import nn

    from siesta.backbones.layers import GlobalAveragePool, InvertedResidual, SqueezeExcite

    yield nn.Sequential(*conv_norm(0)(3, 16, 3, 2), activation(0)())
    channels = 16
    for index, (kernel, expanded, outputs, squeezes, stride) in enumerate(_BLOCKS, start=1):
        squeeze = SqueezeExcite(expanded, _squeezed(expanded), squeeze_activation) if squeezes else None
        yield InvertedResidual(
            channels, expanded, outputs, kernel, stride, conv_norm(index), activation(index), squeeze
        )
        channels = outputs
    last = len(_BLOCKS) + 1
    expanded = 6 * channels
    act = activation(last)
    pool = GlobalAveragePool()
    yield nn.Sequential(*conv_norm(last)(channels, expanded), act(), pool, nn.Linear(expanded, _FEATURES), act())


def _modified(_image_size: int) -> Iterator[nn.Module]:
    from siesta.backbones.layers import Gelu, conv_group_norm

    group_norm = partial(conv_group_norm, norm_groups=8, eps=1e-3)
    return _layers(lambda index: _batch_norm() if index < _BATCH_NORM_LAYERS else group_norm, lambda _: Gelu, Gelu)


def _plain(_image_size: int) -> Iterator[nn.Module]:
    from torch import nn

    return _layers(lambda _: _batch_norm(), lambda index: nn.ReLU if 1 <= index <= 6 else nn.Hardswish, nn.ReLU)


def _batch_norm() -> ConvNorm:
    from siesta.backbones.layers import conv_batch_norm

    return partial(conv_batch_norm, eps=1e-3, momentum=0.01)


MOBILENET_V3_LARGE_PLAIN = BackboneSpec(
    layers=_plain,
    features=_FEATURES,
    default_cut=8,
    cuts={3: (56, 56, 24), 5: (28, 28, 40), 8: (14, 14, 80), 14: (7, 7, 160)},
    normalization=IMAGENET,
    defaults=FROZEN_NORM,
    last_activation=(-1, "5"),
    layouts={
        "torchvision": CheckpointLayout(torchvision_mobilenet_v3),
        "timm": CheckpointLayout(
            timm_mobilenet((1, 2, 3, 4, 2, 3), ("blocks.6.0.conv", "blocks.6.0.bn1", "conv_head")), norm_eps=1e-5
        ),
    },
)

MOBILENET_V3_LARGE = replace(
    MOBILENET_V3_LARGE_PLAIN,
    layers=_modified,
    defaults=GROUP_NORM,
    layouts={"reference": CheckpointLayout(torchvision_mobilenet_v3)},
)
