"""A residual network of a few thousand weights, for methods that train whole networks many times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torch import nn

from siesta.backbones import BACKBONES
from siesta.backbones.layers import BasicBlock, GlobalAveragePool, conv_batch_norm
from siesta.backbones.resnet import RESNET18

TINY = "tiny_resnet"


def _layers(_image_size: int) -> Iterator[nn.Module]:
    yield nn.Sequential(*conv_batch_norm(3, 8, 3, 4), nn.ReLU())
    yield BasicBlock(8, 8, conv_batch_norm)
    yield BasicBlock(8, 16, conv_batch_norm)
    yield GlobalAveragePool()


TINY_SPEC = replace(RESNET18, layers=_layers, features=16, default_cut=2, cuts={2: (56, 56, 8)}, layouts={})


def register_tiny() -> None:
    """Add the network to the registry of this process."""
    BACKBONES[TINY] = TINY_SPEC
