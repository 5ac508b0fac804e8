"""A pre-trained bottom under a randomly initialised top: the row "Random Initialization" of the SIESTA paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from siesta.backbones import RANDOM, make_backbone
from siesta.contracts import Backbone

__all__ = ["random_top"]


def random_top(backbone: str, weights: str | Path, cut: int | None = None) -> Backbone:
    """Return a network with a file's weights below the cut and random weights above it, for images of 224 px.

    Args:
        backbone: A key of `BACKBONES`.
        weights: File of weights.
        cut: Number of layers in the bottom; the network's default when None.
    """
    trained, fresh = (make_backbone(backbone, cut, weights=source) for source in (weights, RANDOM))
    return replace(trained, top=fresh.top)
