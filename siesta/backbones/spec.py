"""`BackboneSpec`: what the file of a network declares, and all that `make_backbone` needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from siesta.backbones.checkpoint_layouts import CheckpointLayout
from siesta.contracts import Normalization, SleepDefaults

if TYPE_CHECKING:  # the wake side reads specs, and must not load torch
    import torch
    from torch import Tensor, nn

__all__ = ["FROZEN_NORM", "GROUP_NORM", "IMAGENET", "BackboneSpec", "Resize"]

Resize = Callable[["Tensor", "torch.Size"], "Tensor"]
"""Brings a tensor of a file to the shape that it has for another image size; returns it as it is if it cannot."""

IMAGENET = Normalization(mean=(123.675, 116.28, 103.53), std=(58.395, 57.12, 57.375))
"""Mean and standard deviation of ImageNet's pixels, as torchvision's weights expect them."""

FROZEN_NORM = SleepDefaults(lr=0.01, layer_decay=0.99, scale=16.0, dropout=0.2)
"""For a top with batch norm, whose statistics are frozen during sleep; a high learning rate would diverge."""

GROUP_NORM = SleepDefaults(lr=0.2, layer_decay=0.99, scale=16.0, dropout=0.2)
"""For a top with group norm and weight standardisation; the values of the paper."""


@dataclass(frozen=True)
class BackboneSpec:
    """How to create a backbone.

    Attributes:
        layers: Creates the layers for square images of so many pixels a side, from low to high: stem, blocks, and a
            tail whose output is z.
        features: Length of z.
        default_cut: The cut that `make_backbone` uses when none is given.
        cuts: The supported cuts, each with the shape of the latents that it gives at 224 px: (r, s, d), or (N, d) of
            tokens.
        normalization: The normalization of pixels that the network expects.
        defaults: Training values that suit the network.
        layouts: How other projects name its tensors, by project.
        last_activation: Position of the last activation before z: index of the layer (negative, from the end), and
            the name of the attribute in it. None where z follows no activation.
        resize: How tensors whose shape depends on the image size are brought to another one, by name in the uncut
            network.
        published: Returns the weights that a package ships, by the names of the uncut network's state dict; None where
            there are none.
        image_size: Side in pixels of the square images that learners use unless they are told otherwise.
        name: What a learner stores for a spec that is given in place of a name; those in `BACKBONES` need none.
        takes_vectors: Whether its input are vectors, which are not scaled, and `image_size` their length.
    """

    layers: Callable[[int], Iterable[nn.Module]]
    features: int
    default_cut: int
    cuts: Mapping[int, tuple[int, ...]]
    normalization: Normalization
    defaults: SleepDefaults
    last_activation: tuple[int, str] | None
    layouts: Mapping[str, CheckpointLayout] = field(default_factory=dict)
    resize: Mapping[str, Resize] = field(default_factory=dict)
    published: Callable[[], Mapping[str, npt.NDArray[Any]]] | None = None
    image_size: int = 224
    name: str | None = None
    takes_vectors: bool = False
