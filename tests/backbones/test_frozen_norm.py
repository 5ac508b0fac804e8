"""Folding frozen norms into convolutions changes neither outputs nor gradients, and shares the parameters."""

from __future__ import annotations

import copy

import pytest
import torch

from siesta.backbones import BACKBONES, make_backbone
from siesta.backbones.frozen_norm import FrozenConvNorm, with_frozen_norms


@pytest.mark.parametrize("name", BACKBONES)
def test_outputs_and_gradients_are_the_same(name: str) -> None:
    backbone = make_backbone(name, weights="published" if name == "efficientnet_lite0" else "random")
    top = backbone.top.double()
    fast = with_frozen_norms(top)
    latents = torch.rand(2, *backbone.latent_shape(32), dtype=torch.float64)
    gradients = []
    for network in (top, fast):
        loss = network(latents).square().mean()
        gradients.append(torch.autograd.grad(loss, list(top.parameters())))
    assert all(torch.allclose(a, b, rtol=1e-6, atol=1e-12) for a, b in zip(*gradients, strict=True))


def test_parameters_are_shared_and_the_original_is_left_as_it_is() -> None:
    top = make_backbone().top
    before = copy.deepcopy(top.state_dict())
    names = [name for name, _ in top.named_modules()]
    fast = with_frozen_norms(top)
    assert any(isinstance(module, FrozenConvNorm) for module in fast.modules())
    assert {id(p) for p in fast.parameters()} == {id(p) for p in top.parameters()}
    assert names == [name for name, _ in top.named_modules()]
    with torch.no_grad():
        next(fast.parameters()).add_(1)
    assert not torch.equal(next(iter(before.values())), next(iter(top.state_dict().values())))
