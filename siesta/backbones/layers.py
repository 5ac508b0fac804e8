"""Building blocks that several networks share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.backbones.depthwise import Conv

__all__ = [
    "ConvNorm",
    "Gelu",
    "InvertedResidual",
    "Pool",
    "SqueezeExcite",
    "StandardConv",
    "batch_normed",
    "group_normed",
    "initialise",
    "standardised",
]

ConvNorm: TypeAlias = Callable[..., list[nn.Module]]
"""(inputs, outputs, kernel=1, stride=1, groups=1) -> a convolution without bias and the norm that follows it."""


def standardised(weight: Tensor) -> Tensor:
    """Filters (C', C, k, k) with mean zero and spread one, each: weight standardisation (Qiao et al. 2019)."""
    centred = weight - weight.mean(dim=(1, 2, 3), keepdim=True)
    norm: Tensor = torch.linalg.vector_norm(centred, dim=(1, 2, 3), keepdim=True)  # torch.std is slow
    return centred * (1 / (norm / math.sqrt(weight[0].numel() - 1) + 1e-5))


class StandardConv(Conv):
    """A convolution with standardised filters."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C', H / stride, W / stride)."""
        out: Tensor = self._conv_forward(x, standardised(self.weight), self.bias)
        return out

    def plain(self) -> nn.Conv2d:
        """The same function as an ordinary convolution, for inference."""
        size, stride, bias = self.kernel_size[0], self.stride[0], self.bias is not None
        conv = nn.Conv2d(self.in_channels, self.out_channels, size, stride, size // 2, groups=self.groups, bias=bias)
        conv.load_state_dict({**self.state_dict(), "weight": standardised(self.weight.detach())})
        return conv


def batch_normed(
    inputs: int,
    outputs: int,
    kernel: int = 1,
    stride: int = 1,
    groups: int = 1,
    *,
    eps: float = 1e-5,
    momentum: float = 0.1,
    conv: type[nn.Conv2d] = Conv,
) -> list[nn.Module]:
    """A convolution and batch norm."""
    convolution = conv(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [convolution, nn.BatchNorm2d(outputs, eps=eps, momentum=momentum)]


def group_normed(
    inputs: int,
    outputs: int,
    kernel: int = 1,
    stride: int = 1,
    groups: int = 1,
    *,
    norm_groups: int,
    eps: float = 1e-5,
) -> list[nn.Module]:
    """A weight-standardised convolution and group norm (Wu & He 2018): no batch statistics anywhere."""
    convolution = StandardConv(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [convolution, nn.GroupNorm(norm_groups, outputs, eps=eps)]


class Gelu(nn.Module):
    """GELU (Hendrycks & Gimpel 2016), as quick in channels-last memory as in the usual one.

    torch has a quick kernel for contiguous tensors only; seen with its channels last, such a tensor is one.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same."""
        if not x.is_contiguous() and x.dim() == 4:
            return F.gelu(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return F.gelu(x)


class SqueezeExcite(nn.Module):
    """Scales each channel by a gate that sees the mean of all channels (Hu et al. 2018; gate as in MobileNetV3)."""

    def __init__(self, channels: int, squeezed: int, activation: type[nn.Module]) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(channels, squeezed, 1)
        self.activation = activation()
        self.expand = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C, H, W)."""
        mean = x.mean(dim=(2, 3), keepdim=True)  # (B, C, 1, 1)
        return x * F.hardsigmoid(self.expand(self.activation(self.reduce(mean))))


class InvertedResidual(nn.Module):
    """Expand, convolve each channel, project (Sandler et al. 2018); added to the input where shapes allow.

    Attributes:
        parts: Which of "expand", "depthwise", "squeeze" and "project" it has, in order; `squeeze` gates channels.
    """

    def __init__(
        self,
        inputs: int,
        wide: int,
        outputs: int,
        kernel: int,
        stride: int,
        conv_norm: ConvNorm,
        activation: type[nn.Module],
        squeeze: SqueezeExcite | None = None,
    ) -> None:
        super().__init__()
        parts: dict[str, list[nn.Module]] = {}
        if wide != inputs:
            parts["expand"] = [*conv_norm(inputs, wide), activation()]
        parts["depthwise"] = [*conv_norm(wide, wide, kernel, stride, groups=wide), activation()]
        if squeeze is not None:
            parts["squeeze"] = [squeeze]
        parts["project"] = conv_norm(wide, outputs)
        self.parts = tuple(parts)
        self.body = nn.Sequential(*(module for part in parts.values() for module in part))
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


def initialise(network: nn.Module) -> None:
    """Fresh weights: convolutions keep the variance of gradients (He et al. 2015), linear layers start small."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            fan_out = math.prod(module.kernel_size) * module.out_channels // module.groups
            nn.init.normal_(module.weight, std=math.sqrt(2 / fan_out))
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.01)
        else:
            continue
        if module.bias is not None:
            nn.init.zeros_(module.bias)
