"""Training with frozen batch-norm statistics, without the cost of the norm.

A batch norm with frozen statistics is a scale and a shift of each channel. Both can be folded into the convolution
before it, which saves one pass over the feature maps, forwards and backwards, and gives the same gradients.
"""

from __future__ import annotations

import copy

from torch import Tensor, nn

__all__ = ["FrozenConvNorm", "with_frozen_norms"]


class FrozenConvNorm(nn.Module):
    """A convolution and the batch norm after it, computed as one convolution of their parameters."""

    def __init__(self, conv: nn.Conv2d, norm: nn.BatchNorm2d) -> None:
        super().__init__()
        self.conv, self.norm = conv, norm

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C', H / stride, W / stride)."""
        norm = self.norm
        assert norm.running_mean is not None and norm.running_var is not None
        scale = norm.weight * (norm.running_var + norm.eps).rsqrt()  # (C',)
        shift = norm.bias - norm.running_mean * scale
        out: Tensor = self.conv._conv_forward(x, self.conv.weight * scale[:, None, None, None], shift)
        return out


def with_frozen_norms(network: nn.Sequential) -> nn.Sequential:
    """Return a network that shares the parameters of `network` and trains faster; `network` is not changed."""
    copied = _with_shared_parameters(network)
    assert isinstance(copied, nn.Sequential)
    return copied


def _with_shared_parameters(module: nn.Module) -> nn.Module:
    """Copy the containers around the same parameters, and replace each pair of convolution and batch norm."""
    copied = copy.copy(module)
    copied._modules = {name: child and _with_shared_parameters(child) for name, child in module._modules.items()}
    if isinstance(copied, nn.Sequential):
        for index in range(len(copied) - 1):
            first, second = copied[index], copied[index + 1]
            if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d) and first.bias is None:
                copied[index], copied[index + 1] = FrozenConvNorm(first, second), nn.Identity()
    return copied
