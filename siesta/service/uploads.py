"""Decoding of uploaded images in threads of its own, with checks before anything is decoded."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

from fastapi import UploadFile
from PIL import Image, UnidentifiedImageError

from siesta.contracts import Input
from siesta.errors import BadInput
from siesta.images import Pixels, check_limits, is_large, read_opened
from siesta.service.options import RequestLimits
from siesta.service.problems import Problem

__all__ = ["UploadDecoder", "make_thumbnail", "open_upload"]

_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
_THREADS = 2  # few, because an image may take a hundred megabytes while it is decoded
_THUMBNAIL_SIZE = 96
_MAX_NAME_LENGTH = 80


class UploadDecoder:
    """Decodes uploaded images in a few threads; large images, one at a time, in a thread of their own."""

    def __init__(self, limits: RequestLimits, kind: Input) -> None:
        """Create the threads.

        Args:
            limits: Limits on requests.
            kind: What the learner takes.
        """
        self._limits = limits
        self._kind = kind
        self._pool = ThreadPoolExecutor(_THREADS, "decode")
        self._large_pool = ThreadPoolExecutor(1, "decode-large")

    async def decode(self, files: Sequence[UploadFile]) -> list[Pixels]:
        """Return the pixels of all images of a request; raise if one of them cannot be used."""
        if self._kind.noun != "image":
            raise Problem(
                409, "this learner takes vectors, not images: send them to /v1/vectors/learn and /v1/vectors/predict"
            )
        max_images = self._limits.images
        if len(files) > max_images:
            raise Problem(413, f"a request has at most {max_images} images, this one {len(files)}: send it in parts")
        loop = asyncio.get_running_loop()
        size = self._kind.shape[-1]
        decoded = []
        for number, file in enumerate(files, start=1):
            name = f"image {number} ({_printable(file.filename)})"
            image = await loop.run_in_executor(self._pool, open_upload, file.file, name, size, self._limits.pixels)
            pool = self._large_pool if is_large(image, size) else self._pool
            decoded.append(await loop.run_in_executor(pool, read_opened, image, size, name))
        return decoded

    async def make_thumbnails(self, images: Sequence[Pixels]) -> list[bytes]:
        """Return an encoded thumbnail of each image."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: [make_thumbnail(pixels) for pixels in images])


def open_upload(file: BinaryIO, name: str, size: int, max_pixels: int) -> Image.Image:
    """Return the image in an untrusted file, not decoded yet, if it is within the limits.

    Args:
        file: JPEG, PNG, WebP or GIF, whatever its name and declared type are.
        name: Name of the image in error messages.
        size: Side of the square that it is brought to.
        max_pixels: Images with more pixels are refused.
    """
    try:
        image = Image.open(file, formats=_FORMATS)
    except UnidentifiedImageError:
        raise BadInput(f"{name} is not a readable image: send JPEG, PNG, WebP or GIF") from None
    except Image.DecompressionBombError:
        raise BadInput(f"{name} has more than {max_pixels:,} pixels: make it smaller first") from None
    except Exception as error:  # Pillow's decoders raise exceptions of many types for malformed files
        raise BadInput(f"{name} is not a readable image (broken header): send JPEG, PNG, WebP or GIF") from error
    check_limits(image, name, size, max_pixels)
    return image


def make_thumbnail(pixels: Pixels) -> bytes:
    """Return a small WebP image of pixels (H, W, 3)."""
    small = Image.fromarray(pixels).resize((_THUMBNAIL_SIZE, _THUMBNAIL_SIZE), Image.Resampling.BICUBIC)
    data = io.BytesIO()
    small.save(data, "WEBP", quality=50)
    return data.getvalue()


def _printable(name: str | None) -> str:
    """Return a file's name without control characters, shortened, for an error message."""
    text = "".join(character for character in name or "" if character.isprintable())
    return text[:_MAX_NAME_LENGTH] or "without a name"
