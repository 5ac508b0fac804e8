"""Tops for vectors that another network has computed: embeddings of text, sound, images or sensors.

There is no bottom: the latents of a learner are the vectors themselves, one token (1, d). A top divides each vector by
the root mean square of its elements, so that learning rates do not depend on the scale of the vectors, and applies one
to three residual blocks, x + W2 gelu(W1 x). W2 is zero at first. So a new top changes nothing but the length of a
vector, and a learner is as good awake as its head is on the vectors as they come. z is the mean over the tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from siesta.backbones.spec import BackboneSpec
from siesta.contracts import Normalization, SleepDefaults
from siesta.errors import BadInput
from siesta.rng import Purpose, generator

if TYPE_CHECKING:
    from torch import nn

__all__ = ["DEFAULT_TOP_LAYERS", "MAX_FEATURES", "VECTOR_NETWORKS", "vector_network", "vector_spec"]

DEFAULT_TOP_LAYERS = 2
MAX_FEATURES = 8192
"""The longest vectors: a block of them has 1 GB of weights."""

_DEFAULTS = SleepDefaults(lr=0.2, layer_decay=0.99, scale=16.0, dropout=0.2)
_UNSCALED = Normalization(mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
_WIDENING = 2  # hidden units of a block for each feature

VECTOR_NETWORKS = {f"vectors_{blocks}": blocks for blocks in (1, 2, 3)}
"""The number of residual blocks of each network over vectors, by its name."""


def vector_network(features: int, layers: int | None) -> str:
    """Return the name of the network over vectors of this length with so many trainable layers."""
    if not 1 <= features <= MAX_FEATURES:
        raise BadInput(f"features is {features}: give the length of your vectors, 1 to {MAX_FEATURES:,}")
    layers = DEFAULT_TOP_LAYERS if layers is None else layers
    name = f"vectors_{layers}"
    if name not in VECTOR_NETWORKS:
        raise BadInput(f"top_layers is {layers}: give 1 to {max(VECTOR_NETWORKS.values())}")
    return name


def vector_spec(name: str, features: int) -> BackboneSpec:
    """Return the spec of a network over vectors.

    Args:
        name: A key of `VECTOR_NETWORKS`.
        features: d, the length of the vectors and of z.
    """
    blocks = VECTOR_NETWORKS[name]
    return BackboneSpec(
        layers=partial(_layers, blocks),
        features=features,
        default_cut=0,
        cuts={},
        normalization=_UNSCALED,
        defaults=_DEFAULTS,
        last_activation=None,
        published=partial(_initial_weights, blocks, features),
        image_size=features,
        name=name,
        takes_vectors=True,
    )


def _layers(blocks: int, features: int) -> Iterator[nn.Module]:
    """Yield the scaling, the blocks and the mean."""
    from siesta.backbones.vector_layers import MeanOfVectors, ResidualBlock, UnitScale

    yield UnitScale()
    for _ in range(blocks):
        yield ResidualBlock(features, _WIDENING * features)
    yield MeanOfVectors()


def _initial_weights(blocks: int, features: int) -> dict[str, npt.NDArray[Any]]:
    """Return the weights of new blocks by the names of the uncut network, the same each time."""
    hidden = _WIDENING * features
    weights: dict[str, npt.NDArray[Any]] = {}
    for block in range(1, blocks + 1):
        rng = generator(block, Purpose.INITIAL_WEIGHTS)
        weights[f"{block}.fc1.weight"] = rng.normal(0, features**-0.5, (hidden, features)).astype(np.float32)
        weights[f"{block}.fc1.bias"] = np.zeros(hidden, np.float32)
        weights[f"{block}.fc2.weight"] = np.zeros((features, hidden), np.float32)
        weights[f"{block}.fc2.bias"] = np.zeros(features, np.float32)
    return weights
