"""Parameters of a backbone, as papers count them."""

from __future__ import annotations

from siesta.backbones import RANDOM, make_backbone


def millions(name: str, cut: int | None = None) -> tuple[float, float]:
    """Parameters in all and above the cut, with the output layer of 1000 classes, in millions."""
    backbone = make_backbone(name, cut, weights=RANDOM)
    output = 1000 * backbone.features
    bottom, top = (sum(some.numel() for some in part.parameters()) for part in (backbone.bottom, backbone.top))
    return (bottom + top + output) / 1e6, (top + output) / 1e6
