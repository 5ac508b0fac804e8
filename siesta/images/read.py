"""Reading images: from a file, PIL image or array to upright, resized and cropped pixels."""

from __future__ import annotations

import stat
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image

from siesta.contracts import Normalization
from siesta.errors import BadInput
from siesta.images.decode import MAX_PIXELS, REMEDY, DecodedImage, decoded

__all__ = ["CROP_SHARE", "ImageLike", "Pixels", "decode_file", "normalize", "read_image", "read_opened"]

ImageLike: TypeAlias = str | Path | Image.Image | npt.NDArray[Any]
"""An image in any form that siesta reads."""

Pixels: TypeAlias = npt.NDArray[np.uint8]
"""An RGB image, (S, S, 3)."""

CROP_SHARE = 0.875
"""Share of the short side of an image that the centre crop keeps."""


def read_image(image: ImageLike, size: int) -> Pixels:
    """Return the pixels (size, size, 3) of an image: short side resized to size / 0.875, bicubic, then centre crop.

    Args:
        image: The path of a file, a PIL image, or an array (H, W), (H, W, 1), (H, W, 3) or (H, W, 4) of uint8 or of
            floats in 0..1. A uint8 array of exactly (size, size, 3) is returned unchanged.
        size: Side of the square in pixels.
    """
    if isinstance(image, np.ndarray):
        if image.dtype == np.uint8 and image.shape == (size, size, 3):
            return image
        image = Image.fromarray(_to_uint8(image))
    if isinstance(image, Image.Image):
        with decoded(image, "the image") as picture:
            return _crop(picture, size, "the image")
    if isinstance(image, (str, Path)):
        with decode_file(Path(image), size) as picture:
            return _crop(picture, size, str(image))
    raise BadInput(f"an image is a path, a PIL image or an array, not {type(image).__name__}: pass one of these")


def read_opened(image: Image.Image, size: int, name: str) -> Pixels:
    """Return what `read_image` returns for the file of an image that was opened, but not decoded.

    The image is closed before another large one is decoded, because its memory is in use until it is closed.
    """
    with decoded(image, name, size) as picture, closing(image):
        return _crop(picture, size, name)


def _crop(picture: DecodedImage, size: int, name: str) -> Pixels:
    width, height = picture.width, picture.height
    if not (width and height):
        raise BadInput(f"{name} has no pixels: give another image")
    ratio = size / CROP_SHARE / min(width, height)
    new_width = max(round(width * ratio), size)
    new_height = max(round(height * ratio), size)
    if new_width * new_height > MAX_PIXELS:
        raise BadInput(f"{name} with its {width} x {height} pixels is too long and thin: crop it first")
    left, top = (new_width - size) // 2, (new_height - size) // 2
    resized = picture.resize(new_width, new_height, (left, left + size))
    return np.asarray(resized.crop((0, top, size, top + size)))


def normalize(pixels: Sequence[Pixels], normalization: Normalization) -> npt.NDArray[np.float32]:
    """Return images (S, S, 3) as the input of a bottom, (B, 3, S, S)."""
    batch = np.stack(pixels).transpose(0, 3, 1, 2).astype(np.float32, order="C")
    mean, std = (np.array(values, np.float32).reshape(3, 1, 1) for values in (normalization.mean, normalization.std))
    batch -= mean
    batch /= std
    return batch


@contextmanager
def decode_file(path: Path, side: int) -> Iterator[DecodedImage]:
    """Decode the image in a file, of which the sides need not be longer than `side`."""
    with _open_file(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the limits of `decode` apply
        with decoded(_open_image(file, path), str(path), side) as picture:
            yield picture


def _open_file(path: Path) -> BinaryIO:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe would block
            raise BadInput(f"{path} is not a file: give the path of an image")
        return path.open("rb")
    except (FileNotFoundError, IsADirectoryError):
        raise BadInput(f"there is no image at {path}: check the path") from None
    except PermissionError:
        raise BadInput(f"{path} cannot be read (permission denied): change its permissions") from None
    except (OSError, ValueError) as error:  # an impossible name, or a failing disk
        raise BadInput(f"{path} is not a readable image: {REMEDY}") from error


def _open_image(file: BinaryIO, path: Path) -> Image.Image:
    try:
        return Image.open(file)
    except Image.DecompressionBombError:
        raise BadInput(f"{path} has more than {MAX_PIXELS:,} pixels: make it smaller first") from None
    except Exception as error:  # Pillow raises all kinds of errors for what is no image
        raise BadInput(f"{path} is not a readable image: {REMEDY}") from error


def _to_uint8(array: npt.NDArray[Any]) -> Pixels:
    """Return an array of any supported shape and type as (H, W, 3) or (H, W, 4) uint8."""
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4) or 0 in array.shape:
        raise BadInput(f"an image array has shape (height, width) or (height, width, 1, 3 or 4), not {array.shape}")
    if np.issubdtype(array.dtype, np.floating):
        if not (array.min() >= 0 and array.max() <= 1):  # false for NaN too
            found = f"{array.min():.4g}..{array.max():.4g}"
            raise BadInput(f"an image array of floats has values in 0..1, not in {found}: scale it or pass uint8")
        array = np.round(array * 255)
    elif array.dtype != np.uint8:
        raise BadInput(f"an image array has dtype uint8 or floats, not {array.dtype}: convert it first")
    array = array.astype(np.uint8)
    return array if array.shape[2] > 1 else np.repeat(array, 3, axis=2)
