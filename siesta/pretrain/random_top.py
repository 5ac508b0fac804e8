"""A pre-trained bottom under a fresh top, the row "Random Initialization" of the SIESTA paper's table of methods."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from siesta.backbones import RANDOM, make_backbone
from siesta.contracts import Backbone

__all__ = ["random_top"]


def random_top(backbone: str, weights: str | Path, cut: int | None = None) -> Backbone:
    """A network with a file's weights below the cut, the network's usual one when None, and fresh ones above it."""
    known, fresh = (make_backbone(backbone, cut, weights=source) for source in (weights, RANDOM))
    return replace(known, top=fresh.top)
