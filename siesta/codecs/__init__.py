"""Codecs by name, and the fitted ones that come with the package."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from siesta.codecs.opq import OPQ
from siesta.codecs.raw import Raw
from siesta.contracts import Codec

__all__ = ["CODECS", "DEFAULT_CODEC", "OPQ", "Raw", "relative_error", "shipped"]

DEFAULT_CODEC = "opq"
CODECS: dict[str, type[OPQ] | type[Raw]] = {"opq": OPQ, "raw": Raw}


def relative_error(codec: Codec, latents: Tensor) -> float:
    """Mean over vectors of |Z - Z'|^2 / |Z|^2 for latents (B, d, r, s); all-zero vectors do not count."""
    channels, rows, columns = latents.shape[1:]
    again = codec.decode(codec.encode(latents), (channels, rows, columns))
    energy = latents.square().sum(dim=1)
    ratio = (latents - again).square().sum(dim=1) / energy
    return float(ratio[energy > 0].mean())


def shipped(backbone: str, cut: int) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The fitted codec's tensors for a backbone and cut, and how they were made; None where none is shipped."""
    folder = resources.files("siesta.codecs") / "fitted"
    name = f"{backbone}-{cut}"
    with resources.as_file(folder) as path:
        if not (path / f"{name}.safetensors").is_file():
            return None
        return load_file(path / f"{name}.safetensors"), json.loads((path / f"{name}.json").read_text("utf-8"))
