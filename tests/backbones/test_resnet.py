"""ResNet18: its published sizes, and the layers with group norm."""

from __future__ import annotations

import pytest
from torch import nn

from siesta.backbones import BACKBONES
from siesta.backbones.layers import StandardisedConv2d
from tests.backbones.sizes import millions


@pytest.mark.parametrize("name", ["resnet18", "resnet18_gn"])
def test_sizes_are_the_published_ones(name: str) -> None:
    whole, above = millions(name)
    assert whole == pytest.approx(11.69, rel=0.01) and above == pytest.approx(10.08, rel=0.01)


@pytest.mark.parametrize(("name", "first"), [("resnet18", 99), ("resnet18_gn", 6)])
def test_group_norm_begins_above_the_default_cut(name: str, first: int) -> None:
    for index, layer in enumerate(BACKBONES[name].layers(224)):
        for module in layer.modules():
            assert not isinstance(module, nn.BatchNorm2d) or index < first
            assert not isinstance(module, nn.GroupNorm) or (index >= first and module.num_groups == 32)
            assert not isinstance(module, nn.Conv2d) or isinstance(module, StandardisedConv2d) == (index >= first)
