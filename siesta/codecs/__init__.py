"""Codecs by name, and the fitted ones that come with the package."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from siesta.codecs.opq import OPQ

__all__ = ["CODECS", "OPQ", "shipped"]

CODECS = {"opq": OPQ}


def shipped(backbone: str, cut: int) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The fitted codec's tensors for a backbone and cut, and how they were made; None where none is shipped."""
    folder = resources.files("siesta.codecs") / "fitted"
    name = f"{backbone}-{cut}"
    with resources.as_file(folder) as path:
        if not (path / f"{name}.safetensors").is_file():
            return None
        return load_file(path / f"{name}.safetensors"), json.loads((path / f"{name}.json").read_text("utf-8"))
