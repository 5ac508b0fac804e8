from __future__ import annotations

import math

import torch

from siesta.backbones.vector_layers import MeanOfVectors, ResidualBlock, UnitScale


def test_the_formulas() -> None:
    x = torch.tensor([[[3.0, 4.0], [0.0, 0.0]]])
    scaled = UnitScale()(x)
    torch.testing.assert_close(scaled, torch.tensor([[[3.0, 4.0], [0.0, 0.0]]]) / math.sqrt(12.5))
    torch.testing.assert_close(MeanOfVectors()(x), torch.tensor([[1.5, 2.0]]))
    block = ResidualBlock(2, 3)
    hidden = x @ block.fc1.weight.T + block.fc1.bias
    gelu = hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))
    torch.testing.assert_close(block(x), x + gelu @ block.fc2.weight.T + block.fc2.bias)
