"""A network of a few thousand weights with a fitted codec, for learners whose network does not matter.

Its codes are as long as those of the default network, so that a budget holds as many samples. All is many times faster:
the default network's statistics and weights are 20 MB a learner.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

from siesta.backbones import BACKBONES, DEFAULT_BACKBONE, PUBLISHED
from siesta.backbones.arrays import state_arrays
from siesta.backbones.cut_network import initial_network
from siesta.backbones.layers import BasicBlock, GlobalAveragePool, conv_batch_norm, init_weights
from siesta.backbones.resnet import RESNET18
from siesta.codecs import CODECS, DEFAULT_CODEC, fitted_codec
from siesta.learner import Siesta, fitting
from siesta.pipeline import NetworkEngines

__all__ = ["FEATURES", "SMALL", "create_small", "register_small", "small_codec"]

SMALL = "small_resnet"
FEATURES = 32
_IMAGES = 100  # that the codec is fitted on; each has four vectors


def create_small(path: Path | str = ":memory:", **options: Any) -> Siesta:
    """Create a learner with the small network for images of 32 px."""
    return Siesta.create(path, **{"backbone": SMALL, "image_size": 32, **options})


def register_small(patch: pytest.MonkeyPatch) -> None:
    """Add the network to the registry of this process, and its codec to those that come with the package."""
    patch.setitem(BACKBONES, SMALL, _SPEC)
    patch.setattr(
        fitting, "fitted_codec", lambda name, cut: small_codec() if name == SMALL else fitted_codec(name, cut)
    )


def _layers(_image_size: int) -> Iterator[nn.Module]:
    yield nn.Sequential(*conv_batch_norm(3, 8, 3, 4), nn.ReLU())
    yield nn.Sequential(*conv_batch_norm(8, 16, 3, 4), nn.ReLU())
    yield BasicBlock(16, 16, conv_batch_norm)
    yield BasicBlock(16, FEATURES, conv_batch_norm)
    yield BasicBlock(FEATURES, FEATURES, conv_batch_norm)
    yield GlobalAveragePool()


@cache
def _weights() -> dict[str, npt.NDArray[Any]]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = nn.Sequential(*_layers(32))
        init_weights(network)
    return state_arrays(network)


_SPEC = replace(
    RESNET18,
    layers=_layers,
    features=FEATURES,
    default_cut=2,
    cuts={1: (56, 56, 8), 2: (14, 14, 16)},
    normalization=BACKBONES[DEFAULT_BACKBONE].normalization,
    layouts={},
    published=_weights,
)


@cache
def small_codec() -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return the arrays of the codec and the centres, and what is known of the fit."""
    rng = np.random.default_rng(0)
    colours = rng.integers(0, 200, (_IMAGES, 1, 1, 3))
    images = list((colours + rng.integers(0, 56, (_IMAGES, 32, 32, 3))).astype(np.uint8))
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, linear in (("centre_linear", True), ("centre", False)):
        network = initial_network(SMALL, None, weights=PUBLISHED, linear=linear, input_size=32)
        fitted = fitting.fit_codec(NetworkEngines(network, "cpu", "torch"), CODECS[DEFAULT_CODEC], images, seed=0)
        assert fitted.centre is not None
        arrays |= {**fitted.codec.state(), name: fitted.centre}
    return arrays, {"codec": DEFAULT_CODEC, "relative_error": {"unseen": fitted.error}}
