"""The centre is subtracted from features and saved with the weights."""

from __future__ import annotations

import torch

from siesta.backbones import RANDOM, make_backbone
from siesta.backbones.centre import Centre


def test_a_new_centre_changes_nothing_and_a_set_one_is_subtracted() -> None:
    module = Centre(3)
    features = torch.tensor([[1.0, 2.0, 3.0], [0.0, -1.0, 5.0]])
    assert torch.equal(module(features), features)
    module.load_state_dict({"centre": torch.tensor([1.0, 0.5, -2.0])})
    assert module(features).tolist() == [[0.0, 1.5, 5.0], [-1.0, -1.5, 7.0]]


def test_it_is_the_last_layer_of_a_top_and_does_not_learn() -> None:
    top = make_backbone("resnet18", weights=RANDOM).top
    assert isinstance(top[-1], Centre)
    assert not list(top[-1].parameters()) and any(name.endswith(".centre") for name in top.state_dict())
