"""Networks that grow."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from siesta.backbones import RANDOM, make_backbone
from siesta.methods.batch.heads import LinearHead
from siesta.methods.batch.network import ExpandingNetwork, GrowingNetwork, frozen_copy, parameter_bytes, stage_ends


def expanding(start: nn.Module | None = None) -> ExpandingNetwork:
    return ExpandingNetwork(nn.Linear(4, 3), nn.Sequential(nn.Linear(3, 2), nn.ReLU()), 2, start)


def test_a_branch_is_added_for_each_step_but_the_first() -> None:
    network = expanding()
    network.grow(2)
    assert network(torch.ones(5, 4)).shape == (5, 2) and len(network.top.branches) == 1
    network.grow(3)
    assert network(torch.ones(5, 4)).shape == (5, 5)
    first, second = network.top.branches
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True)), "a copy"
    assert network.top(torch.ones(1, 4)).shape == (1, 4)


def test_new_branches_may_start_from_given_weights() -> None:
    start = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    network = expanding(start)
    network.grow(2)
    network.grow(2)
    assert torch.equal(network.top.newest()[0].weight, start[0].weight)  # type: ignore[index, arg-type]
    assert network.top.newest() is not start
    assert len(list(network.parameters())) == 2 + 2 * 2 + 2, "the start is no part of it"


def test_class_vectors_of_a_base_are_rows() -> None:
    network = GrowingNetwork(nn.Identity(), LinearHead(2))
    network.start_from(torch.tensor([[0.0, 2.0], [1.0, 0.0]]), 5.0)
    assert torch.allclose(network(torch.eye(2)), torch.tensor([[0.0, 5.0], [5.0, 0.0]]))


def test_a_frozen_copy_has_weights_of_its_own() -> None:
    network = expanding()
    network.grow(2)
    copied = frozen_copy(network)
    assert not any(parameter.requires_grad for parameter in copied.parameters()) and not copied.training
    with torch.no_grad():
        network.output.weight.add_(1)
    assert not torch.equal(copied.output.weight, network.output.weight)  # type: ignore[union-attr, arg-type]
    assert parameter_bytes(network, copied) == 2 * 4 * (4 * 3 + 3 + 3 * 2 + 2 + 2 * 2 + 2)


@pytest.mark.parametrize(
    ("name", "size", "expected"),
    [("resnet18", 224, [2, 4, 6, 8]), ("resnet32", 32, [5, 10, 15]), ("efficientnet_lite0", 224, [1, 3, 5, 11, 16])],
)
def test_stages_end_before_the_map_becomes_smaller(name: str, size: int, expected: list[int]) -> None:
    body = make_backbone(name, 0, weights=RANDOM, image_size=size).top
    assert stage_ends(body, size) == expected
