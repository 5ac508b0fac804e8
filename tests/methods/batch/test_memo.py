"""MEMO: the lower layers are shared."""

from __future__ import annotations

import copy

import torch

from siesta.methods import METHODS
from tests.methods.batch.steps import FIRST, SECOND, make, step
from tests.methods.conftest import Template


def test_only_layers_after_the_last_halving_are_added(templates: dict[str, Template]) -> None:
    method = make(templates, "memo", lr=0.05)
    step(templates, method, FIRST)
    trunk = copy.deepcopy(method.network.top.trunk.state_dict())
    first = copy.deepcopy(method.network.top.branches[0].state_dict())
    before = method.resources().parameters
    step(templates, method, SECOND)
    assert len(method.network.top.trunk) == 2 and len(method.network.top.branches) == 2
    added = sum(parameter.numel() for parameter in method.network.top.branches[1].parameters())
    assert method.resources().parameters == before + added + 4 * 32 + 4 - (2 * 16 + 2)
    new = method.network.top.trunk.state_dict()
    assert any(not torch.equal(trunk[name], new[name]) for name in trunk), "the trunk goes on learning"
    assert all(torch.equal(first[name], part) for name, part in method.network.top.branches[0].state_dict().items())


def test_the_last_stage_of_resnet18_grows(templates: dict[str, Template]) -> None:
    """Ten steps of ImageNet make the published 86.72 million parameters: the last stage ten times, the rest once."""
    from siesta.backbones import RANDOM, make_backbone
    from siesta.methods.batch.network import stage_ends

    body = make_backbone("resnet18", 0, weights=RANDOM).top
    split = stage_ends(body, 224)[-2] + 1
    below, above = (sum(part.numel() for part in layers.parameters()) for layers in (body[:split], body[split:]))
    assert abs((below + 10 * above) / 1e6 - 86.72) < 0.1
    assert METHODS["memo"].codec == "raw"
