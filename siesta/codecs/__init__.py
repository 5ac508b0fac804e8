"""Codecs by name, and the fitted codecs that come with the package."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

from siesta.codecs.float16 import Float16
from siesta.codecs.latents import vector_axis
from siesta.codecs.opq import OPQ
from siesta.codecs.raw import Raw
from siesta.contracts import Codec, Latents
from siesta.registry import Registry, class_of

__all__ = [
    "CODECS",
    "DEFAULT_CODEC",
    "OPQ",
    "VECTOR_CODEC",
    "Float16",
    "Raw",
    "explain_codecs",
    "fitted_codec",
    "relative_error",
]

DEFAULT_CODEC = "opq"
VECTOR_CODEC = "float16"
"""The default codec of a learner of vectors, for which no fitted codec comes with the package."""

CODECS: Registry[type[Codec]] = Registry(
    "codec", {"opq": OPQ, "raw": Raw, "float16": Float16}, group="siesta.codecs", requirement=class_of(Codec)
)


def explain_codecs() -> str:
    """Return the name and the summary of every codec, for help texts."""
    return "; ".join(f"{name}: {summary}" for name, summary in CODECS.summaries().items())


def relative_error(codec: Codec, latents: Latents) -> float:
    """Return the mean of |Z - Z'|^2 / |Z|^2 over the vectors of latents (B, ...), leaving out all-zero vectors."""
    decoded = codec.decode(codec.encode(latents), latents.shape[1:])
    axis = vector_axis(latents.shape[1:])
    energy = np.square(latents).sum(axis=axis)
    errors = np.square(latents - decoded).sum(axis=axis)
    return float((errors[energy > 0] / energy[energy > 0]).mean()) if energy.any() else 0.0


def fitted_codec(backbone: str, cut: int) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]] | None:
    """Return the arrays of the fitted codec for a backbone and cut, and their provenance; None if there is none.

    The arrays are the state of the codec that `provenance["codec"]` names, and the centres of features.
    """
    folder = resources.files("siesta.codecs") / "fitted"
    name = f"{backbone}-{cut}"
    with resources.as_file(folder) as path:
        if not (path / f"{name}.safetensors").is_file():
            return None
        return load_file(path / f"{name}.safetensors"), json.loads((path / f"{name}.json").read_text("utf-8"))
