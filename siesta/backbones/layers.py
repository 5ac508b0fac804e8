"""Building blocks of the networks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from siesta.backbones.depthwise import Conv2d, conv2d

__all__ = [
    "BasicBlock",
    "ConvNorm",
    "Gelu",
    "GlobalAveragePool",
    "InvertedResidual",
    "PlainBlock",
    "SamePaddingConv2d",
    "SqueezeExcite",
    "StandardisedConv2d",
    "channels_last",
    "conv_batch_norm",
    "conv_group_norm",
    "init_weights",
    "standardise",
]

ConvNorm: TypeAlias = Callable[..., list[nn.Module]]
"""(inputs, outputs, kernel=1, stride=1, groups=1) -> a convolution without bias, and the norm after it."""

AnyModule = TypeVar("AnyModule", bound=nn.Module)


def channels_last(module: AnyModule) -> AnyModule:
    """Bring the filters of a module into the memory layout in which convolutions train fastest; return the module."""
    module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch declares it for tensors only
    return module


def standardise(weight: Tensor) -> Tensor:
    """Weight standardisation (Qiao et al. 2019): return filters (C', C, k, k) with mean 0 and deviation 1 each."""
    centred = weight - weight.mean(dim=(1, 2, 3), keepdim=True)
    norm: Tensor = torch.linalg.vector_norm(centred, dim=(1, 2, 3), keepdim=True)  # torch.std is slow
    return centred * (1 / (norm / math.sqrt(weight[0].numel() - 1) + 1e-5))


class StandardisedConv2d(Conv2d):
    """A convolution with weight standardisation."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C', H / stride, W / stride)."""
        out: Tensor = self._conv_forward(x, standardise(self.weight), self.bias)
        return out

    def plain(self) -> nn.Conv2d:
        """Return an ordinary convolution that computes the same, for inference."""
        size = self.kernel_size[0]
        stride = self.stride[0]
        bias = self.bias is not None
        conv = nn.Conv2d(self.in_channels, self.out_channels, size, stride, size // 2, groups=self.groups, bias=bias)
        conv.load_state_dict({**self.state_dict(), "weight": standardise(self.weight.detach())})
        return conv


def conv_batch_norm(
    inputs: int,
    outputs: int,
    kernel: int = 1,
    stride: int = 1,
    groups: int = 1,
    *,
    eps: float = 1e-5,
    momentum: float = 0.1,
    conv: type[nn.Conv2d] = Conv2d,
) -> list[nn.Module]:
    """Return a convolution and batch norm."""
    convolution = conv(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [convolution, nn.BatchNorm2d(outputs, eps=eps, momentum=momentum)]


def conv_group_norm(
    inputs: int,
    outputs: int,
    kernel: int = 1,
    stride: int = 1,
    groups: int = 1,
    *,
    norm_groups: int,
    eps: float = 1e-5,
) -> list[nn.Module]:
    """Return a weight-standardised convolution and group norm (Wu & He 2018), which use no batch statistics."""
    convolution = StandardisedConv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [convolution, nn.GroupNorm(norm_groups, outputs, eps=eps)]


class Gelu(nn.Module):
    """GELU (Hendrycks & Gimpel 2016) that is as fast for channels-last tensors as for contiguous ones.

    torch's fast kernel needs a contiguous tensor; a channels-last tensor is contiguous once its axes are permuted.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same shape."""
        if not x.is_contiguous() and x.dim() == 4:
            return F.gelu(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return F.gelu(x)


class SqueezeExcite(nn.Module):
    """Squeeze-and-excitation (Hu et al. 2018) with the hard-sigmoid gate of MobileNetV3."""

    def __init__(self, channels: int, squeezed: int, activation: type[nn.Module]) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(channels, squeezed, 1)
        self.activation = activation()
        self.expand = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C, H, W)."""
        mean = x.mean(dim=(2, 3), keepdim=True)  # (B, C, 1, 1)
        return x * F.hardsigmoid(self.expand(self.activation(self.reduce(mean))))


class SamePaddingConv2d(nn.Conv2d):
    """A convolution with TensorFlow's "SAME" padding: an odd pixel of padding goes to the right and to the bottom."""

    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """(B, C, H, W) -> (B, C', ceil(H / stride), ceil(W / stride))."""
        if self.stride[0] == 1:
            margin = self.kernel_size[0] // 2
            return conv2d(x, weight, bias, (1, 1), (margin, margin), self.groups)
        rows, columns = (self._total_padding(length) for length in x.shape[-2:])
        x = F.pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
        return conv2d(x, weight, bias, self.stride, (0, 0), self.groups)  # type: ignore[arg-type]

    def _total_padding(self, length: int) -> int:
        kernel, stride = self.kernel_size[0], self.stride[0]
        return max((-(-length // stride) - 1) * stride + kernel - length, 0)


class InvertedResidual(nn.Module):
    """Inverted residual block (Sandler et al. 2018): expand, depthwise convolution, project; with a skip connection
    where input and output have the same shape.

    Attributes:
        parts: The parts that it has, in order: "expand", "depthwise", "squeeze" (squeeze-and-excitation), "project".
    """

    def __init__(
        self,
        inputs: int,
        expanded: int,
        outputs: int,
        kernel: int,
        stride: int,
        conv_norm: ConvNorm,
        activation: type[nn.Module],
        squeeze: SqueezeExcite | None = None,
    ) -> None:
        super().__init__()
        parts: dict[str, list[nn.Module]] = {}
        if expanded != inputs:
            parts["expand"] = [*conv_norm(inputs, expanded), activation()]
        parts["depthwise"] = [*conv_norm(expanded, expanded, kernel, stride, groups=expanded), activation()]
        if squeeze is not None:
            parts["squeeze"] = [squeeze]
        parts["project"] = conv_norm(expanded, outputs)
        self.parts = tuple(parts)
        self.body = nn.Sequential(*(module for part in parts.values() for module in part))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C', H / stride, W / stride)."""
        out: Tensor = self.body(x)
        return out + x if self.residual else out


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions with a skip connection, projected where the shape changes."""

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


class PlainBlock(nn.Module):
    """Two 3 x 3 convolutions with a skip connection that has no weights."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.stride = 1 if inputs == outputs else 2
        self.added = outputs - inputs
        self.body = nn.Sequential(
            *conv_batch_norm(inputs, outputs, 3, self.stride), nn.ReLU(), *conv_batch_norm(outputs, outputs, 3)
        )
        self.activation = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C', H / stride, W / stride)."""
        skipped = x
        if self.added:
            skipped = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.added))
        out: Tensor = self.activation(self.body(x) + skipped)
        return out


class GlobalAveragePool(nn.Module):
    """Mean over all positions of a feature map."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C)."""
        return x.mean(dim=(2, 3))


def init_weights(network: nn.Module) -> None:
    """Set random weights: He initialisation (fan out) for convolutions, a small normal for linear layers; biases 0."""
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
