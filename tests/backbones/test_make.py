"""Weights of new torch networks."""

from __future__ import annotations

import pytest
import torch

from siesta.backbones import BACKBONES, RANDOM, make_backbone


@pytest.mark.parametrize("name", BACKBONES)
def test_random_weights_are_the_same_each_time_and_do_not_advance_torchs_generator(name: str) -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first = make_backbone(name, weights=RANDOM).top.state_dict()
    torch.manual_seed(6)
    second = make_backbone(name, weights=RANDOM).top.state_dict()
    assert all(torch.equal(first[tensor], second[tensor]) for tensor in first)
    torch.manual_seed(5)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_published_weights_differ_from_random_ones_and_are_the_same_each_time() -> None:
    states = [make_backbone(weights=weights).top.state_dict() for weights in ("published", "published", RANDOM)]
    name = next(name for name in states[0] if name.endswith("weight"))
    assert torch.equal(states[0][name], states[1][name]) and not torch.equal(states[0][name], states[2][name])
