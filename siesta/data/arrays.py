"""Data sets in arrays, from memory or from an .npz file without pickles."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from siesta.data.dataset import Dataset, Pictures, Split
from siesta.data.dataset_folder import DatasetFolder
from siesta.errors import BadInput

__all__ = ["arrays", "from_arrays"]

_KEYS = ("x_train", "y_train", "x_test", "y_test")


def arrays(path: Path) -> Dataset:
    """Read an .npz file of x_train, y_train, x_test, y_test and, optionally, the names of the `classes`."""
    folder = DatasetFolder("arrays", path, "an .npz file of x_train, y_train, x_test, y_test and optionally classes")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:  # closes a damaged file, too
            content = {key: archive[key] for key in (*_KEYS, "classes") if key in archive}
    except (OSError, ValueError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise folder.error(f"{path} cannot be read as arrays without pickles ({error})") from error
    missing = [key for key in _KEYS if key not in content]
    if missing:
        raise folder.error(f"{path} has no {missing[0]}")
    names = content.pop("classes", None)
    if names is not None and (names.dtype.kind != "U" or names.ndim != 1):
        raise folder.error(f"the classes of {path} are not a one-dimensional array of strings")
    return from_arrays(**content, classes=None if names is None else names.tolist())


def from_arrays(
    x_train: npt.NDArray[Any],
    y_train: npt.NDArray[Any],
    x_test: npt.NDArray[Any],
    y_test: npt.NDArray[Any],
    classes: Sequence[str] | None = None,
    name: str = "arrays",
) -> Dataset:
    """Return a data set of uint8 pixels (N, H, W, 3), or grey (N, H, W), and of class numbers (N,).

    Without `classes`, the numbers are the names of the classes.
    """
    train, test = _split("train", x_train, y_train), _split("test", x_test, y_test)
    if classes is None and train.labels.max() >= len(train):  # avoids a tuple of billions of names
        raise BadInput("y_train has numbers greater than it has images: number the classes 0, 1, 2, ...")
    names = map(str, range(1 + int(train.labels.max()))) if classes is None else classes
    return Dataset(name, tuple(names), train, test)


def _split(part: str, pixels: npt.NDArray[Any], labels: npt.NDArray[Any]) -> Split:
    if pixels.dtype != np.uint8 or not (pixels.ndim == 3 or (pixels.ndim == 4 and pixels.shape[3] in (1, 3))):
        shape = f"{pixels.dtype} {pixels.shape}"
        raise BadInput(f"x_{part} must be uint8 (N, H, W, 3) or (N, H, W), not {shape}: convert it to uint8 pixels")
    if labels.dtype.kind not in "iu" or labels.shape not in {(len(pixels),), (len(pixels), 1)} or not labels.size:
        raise BadInput(f"y_{part} must be a class number for each of the {len(pixels)} images of x_{part}")
    with_channels = pixels[..., None] if pixels.ndim == 3 else pixels
    rgb = np.broadcast_to(with_channels, (*with_channels.shape[:3], 3))  # repeats grey without copying it
    names = [f"{part}/{index}" for index in range(len(rgb))]
    numbers = np.clip(labels.reshape(-1).astype(np.int64), -1, np.iinfo(np.int32).max)
    return Split(Pictures.from_array(rgb), names, numbers.astype(np.int32))
