"""Training with frozen batch-norm statistics, without the cost of a norm.

A batch norm whose statistics do not move is a scale and a shift of each channel, and both fit into the convolution
before it: one pass over the maps instead of two, forwards and backwards, the same function and the same gradients.
"""

from __future__ import annotations

import copy

from torch import Tensor, nn

__all__ = ["FrozenConvNorm", "with_frozen_norms"]


class FrozenConvNorm(nn.Module):
    """A convolution and the batch norm after it, as one convolution; the parameters are theirs."""

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
    """The same network, with the same parameters in it, that trains faster; the given one is left as it is."""
    shared = _shared(network)
    assert isinstance(shared, nn.Sequential)
    return shared


def _shared(module: nn.Module) -> nn.Module:
    """A copy of the containers around the same parameters, each (convolution, batch norm) replaced."""
    shell = copy.copy(module)
    shell._modules = {name: child and _shared(child) for name, child in module._modules.items()}
    if isinstance(shell, nn.Sequential):
        for index in range(len(shell) - 1):
            first, second = shell[index], shell[index + 1]
            if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d) and first.bias is None:
                shell[index], shell[index + 1] = FrozenConvNorm(first, second), nn.Identity()
    return shell
