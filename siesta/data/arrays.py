"""Pictures in arrays, from memory or from an .npz file without pickles."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.data.dataset import Dataset, Pictures, Split
from siesta.data.layout import Layout
from siesta.errors import BadInput

__all__ = ["arrays", "from_arrays"]

_KEYS = ("x_train", "y_train", "x_test", "y_test")


def arrays(path: Path) -> Dataset:
    """Reads an .npz file of x_train, y_train, x_test, y_test and, if it has them, names of the `classes`."""
    layout = Layout("arrays", path, "an .npz file of x_train, y_train, x_test, y_test and perhaps classes")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:  # a damaged file is closed, too
            content = {key: found[key] for key in (*_KEYS, "classes") if key in found}
    except (OSError, ValueError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise layout.wrong(f"{path} cannot be read as arrays without pickles ({error})") from error
    missing = [key for key in _KEYS if key not in content]
    if missing:
        raise layout.wrong(f"{path} has no {missing[0]}")
    names = content.pop("classes", None)
    if names is not None and (names.dtype.kind != "U" or names.ndim != 1):
        raise layout.wrong(f"the classes of {path} are not a row of texts")
    return from_arrays(**content, classes=None if names is None else names.tolist())


def from_arrays(
    x_train: npt.NDArray[Any],
    y_train: npt.NDArray[Any],
    x_test: npt.NDArray[Any],
    y_test: npt.NDArray[Any],
    classes: Sequence[str] | None = None,
    name: str = "arrays",
) -> Dataset:
    """A dataset of pixels (N, H, W, 3), or grey (N, H, W), of bytes, and of class numbers (N,).

    Without names, classes are called by their numbers.
    """
    train, test = _split("train", x_train, y_train), _split("test", x_test, y_test)
    if classes is None and train.labels.max() >= len(train):  # before a tuple of two thousand million names is made
        raise BadInput("y_train has numbers greater than it has pictures: number the classes 0, 1, 2, ...")
    names = map(str, range(1 + int(train.labels.max()))) if classes is None else classes
    return Dataset(name, tuple(names), train, test)


def _split(part: str, pixels: npt.NDArray[Any], labels: npt.NDArray[Any]) -> Split:
    if pixels.dtype != np.uint8 or not (pixels.ndim == 3 or (pixels.ndim == 4 and pixels.shape[3] in (1, 3))):
        shape = f"{pixels.dtype} {pixels.shape}"
        raise BadInput(f"x_{part} must be bytes (N, H, W, 3) or (N, H, W), not {shape}: convert it to uint8 pixels")
    if labels.dtype.kind not in "iu" or labels.shape not in {(len(pixels),), (len(pixels), 1)} or not labels.size:
        raise BadInput(f"y_{part} must be a class number for each of the {len(pixels)} pictures of x_{part}")
    coloured = pixels[..., None] if pixels.ndim == 3 else pixels
    stack = np.broadcast_to(coloured, (*coloured.shape[:3], 3))  # grey is three times the same, and takes no room
    names = [f"{part}/{number}" for number in range(len(stack))]
    numbers = np.clip(labels.reshape(-1).astype(np.int64), -1, np.iinfo(np.int32).max)
    return Split(Pictures.of_stack(stack), names, numbers.astype(np.int32))
