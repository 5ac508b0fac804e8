"""A network for inference only: batch norms inside their convolutions, weight standardisation done once."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

__all__ = ["folded"]


@torch.no_grad()
def folded(network: nn.Module) -> nn.Module:
    """A network that computes the same in eval mode, with fewer operations; names of layers stay.

    What need not change is shared with the original, not copied: new weights are in use the sooner.
    """
    made = _shallow(network)
    for name, child in network.named_children():
        plain = getattr(child, "plain", None)  # a convolution that knows itself in ordinary form
        made._modules[name] = plain() if plain else folded(child)
    if isinstance(made, nn.Sequential):
        for index in range(len(made) - 1):
            first, second = made[index], made[index + 1]
            if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d):
                made[index], made[index + 1] = _fused(first, second), nn.Identity()
    return made.eval()


def _shallow(module: nn.Module) -> nn.Module:
    """A module of its own with the same parameters and children."""
    made = copy.copy(module)
    for part in ("_modules", "_parameters", "_buffers"):
        setattr(made, part, dict(getattr(module, part)))
    return made


def _fused(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> nn.Module:
    """A convolution that ends where its norm does."""
    assert norm.running_mean is not None and norm.running_var is not None
    made = _shallow(convolution)
    made.weight, made.bias = fuse_conv_bn_weights(
        convolution.weight,
        convolution.bias,
        norm.running_mean,
        norm.running_var,
        norm.eps,
        norm.weight,
        norm.bias,
    )
    return made
