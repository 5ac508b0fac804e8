"""Networks by name, each cut into a frozen bottom and a plastic top."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import nn

from siesta.backbones import efficientnet_lite
from siesta.backbones.centre import Centre
from siesta.contracts import Backbone
from siesta.errors import BadInput

__all__ = ["BACKBONES", "DEFAULT_BACKBONE", "MIN_IMAGE_SIZE", "Recipe", "make_backbone"]

DEFAULT_BACKBONE = "efficientnet_lite0"
MIN_IMAGE_SIZE = 32


@dataclass(frozen=True)
class Recipe:
    """How to make a backbone.

    Attributes:
        build: Takes a cut and whether to load the published weights.
        default_cut: The cut that `make_backbone` takes when none is named.
        cuts: Each offered cut, with the (r, s, d) that it gives at 224 px.
    """

    build: Callable[[int, bool], Backbone]
    default_cut: int
    cuts: dict[int, tuple[int, int, int]]


BACKBONES: dict[str, Recipe] = {
    "efficientnet_lite0": Recipe(
        build=efficientnet_lite.build,
        default_cut=efficientnet_lite.DEFAULT_CUT,
        cuts={3: (56, 56, 24), 5: (28, 28, 40), 7: (14, 14, 80), 10: (14, 14, 112), 13: (7, 7, 192)},
    ),
}


def make_backbone(name: str = DEFAULT_BACKBONE, cut: int | None = None, *, pretrained: bool = True) -> Backbone:
    """The backbone `name`, cut after `cut` layers (its default cut when None); its top ends with a `Centre`."""
    if name not in BACKBONES:
        raise BadInput(f"there is no backbone '{name}': choose one of {', '.join(BACKBONES)}")
    recipe = BACKBONES[name]
    cut = recipe.default_cut if cut is None else cut
    if cut not in recipe.cuts:
        raise BadInput(f"{name} has no cut after {cut} layers: choose one of {', '.join(map(str, recipe.cuts))}")
    backbone = recipe.build(cut, pretrained)
    return replace(backbone, top=nn.Sequential(*backbone.top, Centre(backbone.features)))
