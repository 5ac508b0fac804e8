"""The cut network."""

from __future__ import annotations

import torch
from torch import nn

from siesta.contracts import Backbone, Normalization, SleepDefaults


def test_the_latent_shape_is_that_of_the_bottoms_output() -> None:
    bottom = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU())
    normalization = Normalization(mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
    defaults = SleepDefaults(lr=0.1, layer_decay=1.0, scale=1.0, dropout=0.0)
    backbone = Backbone("toy", 2, bottom, nn.Sequential(nn.Flatten()), 8, normalization, defaults)
    for size in (32, 45):
        assert backbone.latent_shape(size) == bottom(torch.zeros(1, 3, size, size)).shape[1:]
