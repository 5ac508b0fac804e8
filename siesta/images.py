"""A picture in any form -> checked, upright, resized, cropped pixels, the same way every time."""

from __future__ import annotations

import stat
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageOps
from torch import Tensor

from siesta.contracts import Scaling
from siesta.errors import BadInput

__all__ = ["ImageLike", "Pixels", "opened", "read_image", "scaled"]

ImageLike: TypeAlias = str | Path | Image.Image | npt.NDArray[Any]
Pixels: TypeAlias = npt.NDArray[np.uint8]

_MOST_PIXELS = 100_000_000
_MARGIN = 0.875  # share of the short side that the crop keeps


def read_image(image: ImageLike, size: int) -> Pixels:
    """Pixels (size, size, 3) of a picture: short side to size / 0.875, bicubic, centre crop.

    Args:
        image: A file's path, a PIL image, or an array: (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), of bytes or of
            floats in 0..1. An array of exactly (size, size, 3) bytes is taken as it is.
        size: Side of the square wanted.
    """
    if isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.shape == (size, size, 3):
        return image
    upright = opened(image)
    width, height = upright.size
    name = str(image) if isinstance(image, (str, Path)) else "the picture"
    if not (width and height):
        raise BadInput(f"{name} has no pixels")
    ratio = size / _MARGIN / min(width, height)
    wide, high = max(round(width * ratio), size), max(round(height * ratio), size)
    if wide * high > _MOST_PIXELS:
        raise BadInput(f"{name} with its {width} x {height} pixels is too long and thin to be used")
    left, top = (wide - size) // 2, (high - size) // 2
    cropped = upright.resize((wide, high), Image.Resampling.BICUBIC).crop((left, top, left + size, top + size))
    return np.asarray(cropped)


def scaled(pixels: Sequence[Pixels], scaling: Scaling) -> Tensor:
    """Pictures (S, S, 3) -> what a bottom takes: (B, 3, S, S) float."""
    batch = torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2).contiguous().float()
    mean, std = (torch.tensor(values).reshape(1, 3, 1, 1) for values in (scaling.mean, scaling.std))
    return batch.sub_(mean).div_(std)


def opened(image: ImageLike) -> Image.Image:
    """An upright RGB image, whole."""
    if isinstance(image, np.ndarray):
        return _rgb(Image.fromarray(_bytes_of(image)), "the array")
    if isinstance(image, Image.Image):
        return _rgb(image, "the picture")
    if isinstance(image, (str, Path)):
        return _read_file(Path(image))
    raise BadInput(f"a picture is a path, a PIL image or an array, not {type(image).__name__}")


def _read_file(path: Path) -> Image.Image:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would keep us waiting
            raise BadInput(f"there is no picture at {path}")
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit is below
            return _rgb(Image.open(file), str(path))
    except (FileNotFoundError, IsADirectoryError):
        raise BadInput(f"there is no picture at {path}") from None
    except PermissionError:
        raise BadInput(f"{path} may not be read: check its permissions") from None
    except Image.DecompressionBombError:
        raise BadInput(_too_large(str(path))) from None
    except (OSError, ValueError) as error:  # a name that cannot be, a disk that fails, not a picture
        raise BadInput(f"{path} is not a readable picture") from error


def _too_large(name: str) -> str:
    return f"{name} has more than {_MOST_PIXELS:,} pixels: make it smaller first"


def _rgb(image: Image.Image, name: str) -> Image.Image:
    if image.width * image.height > _MOST_PIXELS:  # known before anything is decoded
        raise BadInput(_too_large(name))
    try:
        image = ImageOps.exif_transpose(image)
        if image.mode.startswith("I"):  # 16 bits a pixel
            image = Image.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))
        if image.has_transparency_data:
            picture = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
        return image.convert("RGB")
    except Exception as error:  # Pillow's decoders raise whatever a broken file makes them stumble over
        raise BadInput(f"{name} is not a readable picture") from error


def _bytes_of(array: npt.NDArray[Any]) -> Pixels:
    """Any array we take -> (H, W, 3) or (H, W, 4) bytes."""
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4) or 0 in array.shape:
        raise BadInput(f"a picture array is (height, width) or (height, width, 1, 3 or 4), this one is {array.shape}")
    if np.issubdtype(array.dtype, np.floating):
        if not (array.min() >= 0 and array.max() <= 1):  # false for NaN too
            raise BadInput("a picture array of floats lies in 0..1, this one does not: scale it or pass bytes")
        array = np.round(array * 255)
    elif array.dtype != np.uint8:
        raise BadInput(f"a picture array holds uint8 or floats, this one {array.dtype}: convert it first")
    array = array.astype(np.uint8)
    return array if array.shape[2] > 1 else np.repeat(array, 3, axis=2)
