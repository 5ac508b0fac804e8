"""What every backbone's spec declares is consistent with its layers."""

from __future__ import annotations

import pytest
from torch import nn

from siesta.backbones import BACKBONES
from siesta.backbones.spec import FROZEN_NORM, GROUP_NORM


@pytest.mark.parametrize("name", BACKBONES)
def test_cuts_lie_inside_the_network_and_include_the_default(name: str) -> None:
    spec = BACKBONES[name]
    count = len(list(spec.layers(224)))
    assert spec.default_cut in spec.cuts
    assert list(spec.cuts) == sorted(spec.cuts) and min(spec.cuts) > 0 and max(spec.cuts) < count
    sizes = [shape[0] for shape in spec.cuts.values()]
    assert sizes == sorted(sizes, reverse=True), "maps and numbers of tokens shrink towards the top"


@pytest.mark.parametrize("name", BACKBONES)
def test_the_last_activation_is_where_the_spec_says(name: str) -> None:
    spec = BACKBONES[name]
    if spec.last_activation is None:
        return
    index, attribute = spec.last_activation
    activation = getattr(list(spec.layers(224))[index], attribute)
    assert isinstance(activation, nn.Module) and not list(activation.parameters())


@pytest.mark.parametrize("name", BACKBONES)
def test_learning_rates_suit_the_norms_of_the_top(name: str) -> None:
    spec = BACKBONES[name]
    top = nn.Sequential(*list(spec.layers(224))[spec.default_cut :])
    norms = {type(module) for module in top.modules()} & {nn.BatchNorm2d, nn.GroupNorm}
    if norms:  # published values; other networks have their own
        assert spec.defaults.lr == (FROZEN_NORM if nn.BatchNorm2d in norms else GROUP_NORM).lr


@pytest.mark.parametrize("name", BACKBONES)
def test_tensors_whose_shape_depends_on_the_image_size_can_be_resized(name: str) -> None:
    spec = BACKBONES[name]
    small, large = (nn.Sequential(*spec.layers(size)).state_dict() for size in (64, 96))
    assert list(small) == list(large)
    changed = {tensor for tensor in small if small[tensor].shape != large[tensor].shape}
    assert changed == set(spec.resize)
    for tensor, resize in spec.resize.items():
        assert resize(small[tensor], large[tensor].shape).shape == large[tensor].shape
