"""Masks of channels inside blocks, and their removal."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from siesta.backbones import RANDOM, make_backbone
from siesta.errors import BadInput
from siesta.methods.batch.channels import ChannelMask, fit_shapes, inner_channels


def network(name: str) -> nn.Sequential:
    top = make_backbone(name, 0, weights=RANDOM, image_size=32).top
    for module in top.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None
            module.running_mean.uniform_(-0.1, 0.1)
            nn.init.uniform_(module.bias, -0.1, 0.1)
    return top.eval()


@pytest.mark.parametrize("name", ["resnet18", "resnet32", "mobilenet_v3_large_plain", "efficientnet_lite0"])
def test_a_pruned_network_computes_as_one_whose_channels_are_closed(name: str) -> None:
    pruned = network(name)
    closed = copy.deepcopy(pruned)
    rng = np.random.default_rng(0)
    for small, large in zip(inner_channels(pruned), inner_channels(closed), strict=True):
        kept = torch.from_numpy(np.sort(rng.permutation(len(small))[: max(len(small) // 3, 1)]))
        mask = large.mask(1, 1000.0)
        with torch.no_grad():
            mask.logits.fill_(-1.0)
            mask.logits[kept] = 1.0
        small.keep(kept)
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        if name == "mobilenet_v3_large_plain":  # squeezing sees closed channels before their mask
            assert pruned(images).shape == closed(images).shape
        else:
            assert torch.allclose(pruned(images), closed(images), atol=1e-4)
    count = [sum(parameter.numel() for parameter in part.parameters()) for part in (pruned, closed)]
    assert count[0] < 0.8 * count[1]


def test_a_mask_becomes_steeper_in_each_epoch_and_is_hard_without_gradients() -> None:
    mask = ChannelMask(2, steps=3, steepest=10.0)
    found = []
    for _ in range(4):
        found.append(mask.steepness())
        mask(torch.zeros(1, 2, 1, 1))
    assert found == pytest.approx([0.1, 0.1 + 9.9 / 2, 10.0, 0.1])
    with torch.no_grad():
        assert mask.steepness() == 10.0
        assert torch.allclose(mask(torch.ones(1, 2, 1, 1)), torch.sigmoid(torch.tensor(10.0)))
    assert "seen" in mask.state_dict(), "a checkpoint has the position in the epoch"


def test_open_channels_are_those_above_a_half_or_the_most_open_one() -> None:
    mask = ChannelMask(3, steps=1, steepest=10.0)
    with torch.no_grad():
        mask.logits.copy_(torch.tensor([0.1, -0.1, 2.0]))
        assert mask.open_channels().tolist() == [0, 2]
        mask.logits.copy_(torch.tensor([-3.0, -0.1, -2.0]))
        assert mask.open_channels().tolist() == [1]


def test_masks_can_be_taken_away() -> None:
    top = network("resnet32")
    names = set(top.state_dict())
    inner = list(inner_channels(top))
    assert len(inner) == 15
    for channels in inner:
        channels.mask(1, 2.0)
    assert set(top.state_dict()) > names or set(top.state_dict()) != names
    for channels in inner:
        channels.unmask()
    assert set(top.state_dict()) == names


def test_weights_and_importance_of_a_channel() -> None:
    (first, *_) = inner_channels(network("resnet32"))
    assert first.weights_per_channel() == 16 * 9 + 16 * 9
    last = first.body[first.last]
    assert isinstance(last, nn.Conv2d)
    assert np.allclose(first.importance().numpy(), np.abs(last.weight.detach().numpy()).sum(axis=(0, 2, 3)), rtol=1e-5)
    (lite, *_) = inner_channels(network("efficientnet_lite0"))
    assert lite.weights_per_channel() == 16 + 9 + 24, "made, filtered, read"


def test_shapes_are_taken_from_tensors() -> None:
    pruned, fresh = network("mobilenet_v3_large_plain"), network("mobilenet_v3_large_plain")
    for inner in inner_channels(pruned):
        inner.keep(torch.arange(len(inner) // 2))
    fit_shapes(fresh, pruned.state_dict())
    fresh.load_state_dict(pruned.state_dict())
    images = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(fresh(images), pruned(images))


def test_a_network_without_such_blocks_is_refused() -> None:
    with pytest.raises(BadInput, match="no residual blocks with batch norm to prune"):
        list(inner_channels(network("vit_tiny_16")))
