"""ResNet32 for 32 pixels: its published size and shapes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from siesta.backbones import RANDOM, make_backbone
from siesta.backbones.layers import PlainBlock
from siesta.backbones.resnet_cifar import CIFAR
from siesta.methods.cost import count_flops


def test_the_size_is_the_published_one() -> None:
    backbone = make_backbone("resnet32", 0, weights=RANDOM, image_size=32)
    convolutions = 3 * 16 * 9 + 10 * 16 * 16 * 9 + (16 * 32 + 9 * 32 * 32) * 9 + (32 * 64 + 9 * 64 * 64) * 9
    norms = 2 * (11 * 16 + 10 * 32 + 10 * 64)
    total = sum(parameter.numel() for parameter in backbone.top.parameters())
    assert total == convolutions + norms
    assert (total + 10 * 65) / 1e6 == pytest.approx(0.46, abs=0.01), "table 6 of the paper"
    assert count_flops(lambda: backbone.top(torch.zeros(1, 3, 32, 32))) / 2e6 == pytest.approx(69, abs=1)


def test_a_block_that_widens_skips_positions_and_adds_empty_channels() -> None:
    block = PlainBlock(2, 4)
    for parameter in block.parameters():
        torch.nn.init.zeros_(parameter)
    x = torch.rand(1, 2, 4, 4)
    out = block.eval()(x).detach().numpy()
    assert np.array_equal(out[:, :2], x.numpy()[:, :, ::2, ::2]) and not out[:, 2:].any()


def test_pixels_are_normalised_as_usual_on_cifar() -> None:
    assert np.allclose(np.array(CIFAR.mean) / 255, (0.5071, 0.4867, 0.4408), atol=2e-4)
    assert np.allclose(np.array(CIFAR.std) / 255, (0.2675, 0.2565, 0.2761), atol=2e-4)
