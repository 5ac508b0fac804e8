"""Backbones whose norms are not the identity, so that a mistake in folding them shows."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from siesta.backbones import RANDOM, make_backbone
from siesta.backbones.arrays import state_arrays
from siesta.backbones.cut_network import CutNetwork
from siesta.contracts import Backbone

SIZE = 64

Floats = npt.NDArray[np.float32]


@cache
def backbone_with_random_norms(name: str, cut: int | None = None, *, linear: bool = False) -> Backbone:
    """A backbone for images of `SIZE`; shared by the tests, which do not change it."""
    weights = "published" if name == "efficientnet_lite0" else RANDOM
    backbone = make_backbone(name, cut, weights=weights, linear=linear, image_size=SIZE)
    generator = torch.Generator().manual_seed(0)
    for part in (backbone.bottom, backbone.top):
        for module in part.modules():
            if isinstance(module, nn.BatchNorm2d | nn.GroupNorm | nn.LayerNorm):
                module.weight.data *= 1 + 0.2 * torch.rand(module.weight.shape, generator=generator)
                module.bias.data += 0.1 * torch.rand(module.bias.shape, generator=generator)
            if isinstance(module, nn.BatchNorm2d) and module.running_mean is not None:
                module.running_mean += 0.1 * torch.rand(module.running_mean.shape, generator=generator)
    return backbone


def network_of(backbone: Backbone, *, linear: bool = False) -> CutNetwork:
    """The same network as arrays."""
    bottom, top = state_arrays(backbone.bottom), state_arrays(backbone.top)
    return CutNetwork(backbone.name, backbone.cut, linear, SIZE, bottom, top)


def inputs_for(shape: tuple[int, ...], batch: int) -> Floats:
    """Random numbers (B, *shape) in -1..1, the same each time."""
    return np.random.default_rng(batch).uniform(-1, 1, (batch, *shape)).astype(np.float32)


def torch_output(network: nn.Module, inputs: Floats) -> Floats:
    """What torch computes."""
    with torch.no_grad():
        output: Floats = network(torch.from_numpy(inputs)).numpy()
    return output


def relative_difference(output: Floats, expected: Floats) -> float:
    return float(np.abs(output - expected).max() / np.abs(expected).max())
