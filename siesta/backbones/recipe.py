"""What a network's file says about it: all that `make_backbone` needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from torch import nn

from siesta.backbones.layouts import Layout
from siesta.contracts import Scaling, SleepDefaults

__all__ = ["FROZEN_NORM", "GROUP_NORM", "IMAGENET", "Recipe"]

IMAGENET = Scaling(mean=(123.675, 116.28, 103.53), std=(58.395, 57.12, 57.375))
"""Mean and spread of ImageNet's pixels: what torchvision's weights expect."""

FROZEN_NORM = SleepDefaults(rate=0.01, layer_decay=0.99, scale=16.0, dropout=0.2)
"""For a top with batch norm, whose statistics stay frozen asleep: it bears no high rate."""

GROUP_NORM = SleepDefaults(rate=0.2, layer_decay=0.99, scale=16.0, dropout=0.2)
"""For a top with group norm and weight standardisation: the paper's values."""


@dataclass(frozen=True)
class Recipe:
    """How to make a backbone.

    Attributes:
        layers: Makes the layers, low to high: stem, blocks, and a tail that ends at z.
        features: Length of z.
        default_cut: The cut that `make_backbone` takes when none is named.
        cuts: Each offered cut, with the (r, s, d) that it gives at 224 px.
        scaling: What the network expects its pixels to be.
        defaults: Training values that suit it.
        layouts: How other projects name its tensors.
        last_activation: Where the last activation before z is: the layer, counted from the end, and its name in it.
        published: Fills the network with the weights that a dependency ships, if one does.
    """

    layers: Callable[[], Iterable[nn.Module]]
    features: int
    default_cut: int
    cuts: Mapping[int, tuple[int, int, int]]
    scaling: Scaling
    defaults: SleepDefaults
    last_activation: tuple[int, str]
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    published: Callable[[nn.Sequential], None] | None = None
