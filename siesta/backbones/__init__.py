"""Backbones: networks by name, each cut into a frozen bottom (H) and a trainable top (G).

What is said about a network is read without torch; the names that need torch are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from siesta.backbones import efficientnet_lite, mobilenet_v2, mobilenet_v3, resnet, resnet_cifar, vit
from siesta.backbones.feature_space import DEFAULT_SPACE, SPACES, FeatureSpace, make_space
from siesta.backbones.spec import BackboneSpec
from siesta.backbones.vectors import VECTOR_NETWORKS, vector_network, vector_spec
from siesta.errors import BadInput
from siesta.registry import Registry, instance_of

if TYPE_CHECKING:
    from siesta.backbones.checkpoints import checkpoint_bytes, save_checkpoint
    from siesta.backbones.make import make_backbone

__all__ = [
    "BACKBONES",
    "DEFAULT_BACKBONE",
    "DEFAULT_SPACE",
    "MAX_IMAGE_SIZE",
    "MIN_IMAGE_SIZE",
    "PUBLISHED",
    "RANDOM",
    "SPACES",
    "VECTOR_NETWORKS",
    "BackboneSpec",
    "FeatureSpace",
    "check_weights",
    "checkpoint_bytes",
    "cut_of",
    "find_spec",
    "make_backbone",
    "make_space",
    "save_checkpoint",
    "vector_network",
]

_WITH_TORCH = {
    "checkpoint_bytes": "siesta.backbones.checkpoints",
    "make_backbone": "siesta.backbones.make",
    "save_checkpoint": "siesta.backbones.checkpoints",
}

DEFAULT_BACKBONE = "efficientnet_lite0"
MIN_IMAGE_SIZE, MAX_IMAGE_SIZE = 32, 1024
PUBLISHED = "published"
RANDOM = "random"

BACKBONES: Registry[BackboneSpec] = Registry(
    "backbone",
    {
        "efficientnet_lite0": efficientnet_lite.EFFICIENTNET_LITE0,
        "efficientnet_lite1": efficientnet_lite.EFFICIENTNET_LITE1,
        "efficientnet_lite2": efficientnet_lite.EFFICIENTNET_LITE2,
        "mobilenet_v2": mobilenet_v2.MOBILENET_V2,
        "mobilenet_v3_large": mobilenet_v3.MOBILENET_V3_LARGE,
        "mobilenet_v3_large_plain": mobilenet_v3.MOBILENET_V3_LARGE_PLAIN,
        "resnet18": resnet.RESNET18,
        "resnet18_gn": resnet.RESNET18_GN,
        "resnet32": resnet_cifar.RESNET32,
        "vit_tiny_16": vit.VIT_TINY_16,
    },
    group="siesta.backbones",
    requirement=instance_of(BackboneSpec),
)


def cut_of(name: str, cut: int | None) -> int:
    """Return the cut, the backbone's default one for None; raise `BadInput` if the backbone has no such cut."""
    if name in VECTOR_NETWORKS:
        return 0
    spec = BACKBONES[name]
    cut = spec.default_cut if cut is None else cut
    if cut and cut not in spec.cuts:
        raise BadInput(f"{name} has no cut after {cut} layers: choose one of {', '.join(map(str, spec.cuts))}")
    return cut


def check_weights(name: str, weights: str | Path) -> None:
    """Raise `BadInput` if published weights are asked for and there are none."""
    if weights == PUBLISHED and name not in VECTOR_NETWORKS and BACKBONES[name].published is None:
        raise BadInput(f"{name} has no published weights: give a file of weights, or '{RANDOM}'")


def find_spec(name: str, *, linear: bool = False, size: int = 0) -> BackboneSpec:
    """Return the spec of a network; raise `BadInput` if there is none, or it has no last activation to leave out.

    Args:
        name: A key of `BACKBONES` or `VECTOR_NETWORKS`.
        linear: Whether the last activation is to be left out.
        size: The length of the vectors that a network over vectors takes.
    """
    spec = vector_spec(name, size) if name in VECTOR_NETWORKS else BACKBONES[name]
    if linear and spec.last_activation is None:
        raise BadInput(f"{name} has no activation before z to leave out: choose space 'centred' or 'plain'")
    return spec


def __getattr__(name: str) -> Any:
    """Import what needs torch on first use."""
    if name not in _WITH_TORCH:
        raise AttributeError(f"module 'siesta.backbones' has no attribute '{name}'")
    return getattr(import_module(_WITH_TORCH[name]), name)
