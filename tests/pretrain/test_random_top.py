"""A random top over a trained bottom."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from siesta.backbones import RANDOM, make_backbone, save_checkpoint
from siesta.pretrain import random_top
from tests.pretrain.toys import TINY


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A file of weights that are all different from initial ones."""
    network = make_backbone(TINY, 0, weights=RANDOM)
    with torch.no_grad():
        for parameter in network.top.parameters():
            parameter.add_(1.0)
    save_checkpoint(network, tmp_path / "trained.safetensors")
    return tmp_path / "trained.safetensors"


def same_parameters(first: nn.Module, second: nn.Module) -> list[bool]:
    return [torch.equal(*pair) for pair in zip(first.parameters(), second.parameters(), strict=True)]


@pytest.mark.parametrize("cut", [1, 2])
def test_the_bottom_is_that_of_the_file_and_the_top_is_not(weights: Path, cut: int) -> None:
    trained, mixed = make_backbone(TINY, cut, weights=weights), random_top(TINY, weights, cut)
    assert mixed.cut == cut and all(same_parameters(mixed.bottom, trained.bottom))
    assert not any(same_parameters(mixed.top, trained.top))


def test_the_default_cut_is_that_of_the_network(weights: Path) -> None:
    assert random_top(TINY, weights).cut == make_backbone(TINY, weights=RANDOM).cut
