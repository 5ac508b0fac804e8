"""Networks in torch: created with random or published weights, or with those of a file, and cut in two."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from siesta.backbones import DEFAULT_BACKBONE, PUBLISHED, RANDOM, check_weights, cut_of, find_spec
from siesta.backbones.arrays import load_arrays
from siesta.backbones.centre import Centre
from siesta.backbones.checkpoints import load_weights
from siesta.backbones.layers import init_weights
from siesta.backbones.spec import BackboneSpec
from siesta.contracts import Backbone

__all__ = ["make_backbone"]


def make_backbone(
    name: str = DEFAULT_BACKBONE,
    cut: int | None = None,
    *,
    weights: str | Path = PUBLISHED,
    linear: bool = False,
    image_size: int | None = None,
) -> Backbone:
    """Create a backbone; its top ends with a `Centre`.

    Args:
        name: A key of `BACKBONES` or `VECTOR_NETWORKS`.
        cut: Number of layers in the bottom. None means the network's default; 0 puts the whole network into the top.
        weights: "published" for the weights that a package ships, "random" for new ones (the same each time), or
            a file in one of the layouts that `checkpoints` reads.
        linear: Whether to leave out the last activation. The names of the tensors do not change.
        image_size: Side in pixels of the square images, or length of the vectors; None means the network's own. The
            shapes of some networks' tensors depend on it.

    Raises:
        BadInput: The name, the cut or the weights do not exist or do not fit.

    Example:
        >>> backbone = make_backbone("resnet18", weights=RANDOM)
        >>> backbone.latent_shape(224), backbone.features
        ((256, 14, 14), 512)
    """
    spec = find_spec(name, linear=linear, size=image_size or 0)
    cut = cut_of(name, cut)
    check_weights(name, weights)
    network = _random_network(spec, spec.image_size if image_size is None else image_size)
    ignored: tuple[str, ...] = ()
    if weights == PUBLISHED and spec.published is not None:
        load_arrays(network, spec.published())
    elif weights != RANDOM:
        ignored = load_weights(network, Path(weights), spec.layouts.values(), spec.resize)
    if linear and spec.last_activation is not None:
        layer, attribute = spec.last_activation
        setattr(network[layer], attribute, nn.Identity())
    layers = [*network, Centre(spec.features)]
    bottom, top = nn.Sequential(*layers[:cut]).requires_grad_(False), nn.Sequential(*layers[cut:])
    return Backbone(name, cut, bottom.eval(), top.eval(), spec.features, spec.normalization, spec.defaults, ignored)


def _random_network(spec: BackboneSpec, image_size: int) -> nn.Sequential:
    """Return the uncut network with random weights, the same each time; torch's global generator is not advanced."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = nn.Sequential(*spec.layers(image_size))
        init_weights(network)
    return network
