"""Networks by name, each cut into a frozen bottom and a plastic top."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from siesta.backbones import efficientnet_lite, mobilenet_v2, mobilenet_v3, resnet
from siesta.backbones.centre import Centre
from siesta.backbones.checkpoints import checkpoint_bytes, fill, save_checkpoint
from siesta.backbones.layers import initialise
from siesta.backbones.recipe import Recipe
from siesta.backbones.spaces import DEFAULT_SPACE, SPACES, Space, make_space
from siesta.contracts import Backbone
from siesta.errors import BadInput

__all__ = [
    "BACKBONES",
    "DEFAULT_BACKBONE",
    "DEFAULT_SPACE",
    "MAX_IMAGE_SIZE",
    "MIN_IMAGE_SIZE",
    "PUBLISHED",
    "RANDOM",
    "SPACES",
    "Recipe",
    "Space",
    "checkpoint_bytes",
    "make_backbone",
    "make_space",
    "save_checkpoint",
]

DEFAULT_BACKBONE = "efficientnet_lite0"
MIN_IMAGE_SIZE, MAX_IMAGE_SIZE = 32, 1024
PUBLISHED = "published"
RANDOM = "random"

BACKBONES: dict[str, Recipe] = {
    "efficientnet_lite0": efficientnet_lite.RECIPE,
    "mobilenet_v2": mobilenet_v2.RECIPE,
    "mobilenet_v3_large": mobilenet_v3.MODIFIED,
    "mobilenet_v3_large_plain": mobilenet_v3.PLAIN,
    "resnet18": resnet.RESNET18,
    "resnet18_gn": resnet.RESNET18_GN,
}


def make_backbone(
    name: str = DEFAULT_BACKBONE, cut: int | None = None, *, weights: str | Path = PUBLISHED, linear: bool = False
) -> Backbone:
    """A network cut in two; its top ends with a `Centre`.

    Args:
        name: A key of `BACKBONES`.
        cut: Layers below the cut; the network's default when None, all of the network above it when 0.
        weights: "published" for those that come with a dependency, "random" for fresh ones (the same each time), or
            a file in a layout that `checkpoints` reads.
        linear: Leaves the last activation out; names of tensors stay.
    """
    if name not in BACKBONES:
        raise BadInput(f"there is no backbone '{name}': choose one of {', '.join(BACKBONES)}")
    recipe = BACKBONES[name]
    cut = recipe.default_cut if cut is None else cut
    if cut and cut not in recipe.cuts:
        raise BadInput(f"{name} has no cut after {cut} layers: choose one of {', '.join(map(str, recipe.cuts))}")
    if weights == PUBLISHED and recipe.published is None:
        raise BadInput(f"no weights come with {name}: give a file of them, or '{RANDOM}' for fresh ones")
    network = _fresh(recipe)
    ignored: tuple[str, ...] = ()
    if weights == PUBLISHED and recipe.published is not None:
        recipe.published(network)
    elif weights != RANDOM:
        ignored = fill(network, Path(weights), recipe.layouts.values())
    if linear:
        layer, attribute = recipe.last_activation
        setattr(network[layer], attribute, nn.Identity())
    layers = [*network, Centre(recipe.features)]
    bottom, top = nn.Sequential(*layers[:cut]).requires_grad_(False), nn.Sequential(*layers[cut:])
    return Backbone(name, cut, bottom.eval(), top.eval(), recipe.features, recipe.scaling, recipe.defaults, ignored)


def _fresh(recipe: Recipe) -> nn.Sequential:
    """The uncut network with fresh weights, the same each time; torch's global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = nn.Sequential(*recipe.layers())
        initialise(network)
    return network
