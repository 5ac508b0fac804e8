"""Number of parameters of a backbone, as papers count them."""

from __future__ import annotations

from siesta.backbones import RANDOM, make_backbone


def millions(name: str, cut: int | None = None) -> tuple[float, float]:
    """Return millions of parameters in total and above the cut, both with an output layer of 1000 classes."""
    backbone = make_backbone(name, cut, weights=RANDOM)
    output = 1000 * backbone.features
    bottom, top = (
        sum(parameter.numel() for parameter in part.parameters()) for part in (backbone.bottom, backbone.top)
    )
    return (bottom + top + output) / 1e6, (top + output) / 1e6
