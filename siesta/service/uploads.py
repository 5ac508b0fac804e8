"""Pictures that come in: checked before they are decoded, and decoded apart from everything else."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

from fastapi import UploadFile
from PIL import Image, UnidentifiedImageError

from siesta.errors import BadInput
from siesta.images import Pixels, read_image
from siesta.service.options import Limits
from siesta.service.problems import Problem

__all__ = ["Uploads", "read_upload", "thumbnail"]

_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
_AT_ONCE = 2  # a large picture takes hundreds of megabytes while it is decoded
_THUMBNAIL = 96
_LONGEST_NAME = 80


class Uploads:
    """Decodes pictures in a few threads of its own."""

    def __init__(self, limits: Limits, image_size: int) -> None:
        """Takes what is allowed, and the side of the square that pictures are brought to."""
        self._limits, self._image_size = limits, image_size
        self._threads = ThreadPoolExecutor(_AT_ONCE, "decode")

    async def read(self, images: Sequence[UploadFile]) -> list[Pixels]:
        """All pictures of a request, as the learner sees them; one that cannot be used refuses all."""
        most = self._limits.images
        if len(images) > most:
            raise Problem(413, f"a request brings at most {most} pictures, this one {len(images)}: send it in parts")
        loop = asyncio.get_running_loop()
        pixels = []
        for number, image in enumerate(images, start=1):
            name = f"image {number} ({_printable(image.filename)})"
            size, most_pixels = self._image_size, self._limits.pixels
            pixels.append(await loop.run_in_executor(self._threads, read_upload, image.file, name, size, most_pixels))
        return pixels

    async def thumbnails(self, pictures: Sequence[Pixels]) -> list[bytes]:
        """Small pictures of these."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: [thumbnail(pixels) for pixels in pictures])


def read_upload(file: BinaryIO, name: str, size: int, most_pixels: int) -> Pixels:
    """Pixels (size, size, 3) of a picture in a file that nobody vouches for.

    Args:
        file: Of JPEG, PNG, WebP or GIF, whatever it is called.
        name: For the sentence that says why it cannot be used.
        size: Side of the square wanted.
        most_pixels: More are refused before they are decoded.
    """
    try:
        image = Image.open(file, formats=_FORMATS)
    except UnidentifiedImageError:
        raise BadInput(f"{name} is not a readable picture: send JPEG, PNG, WebP or GIF") from None
    except Image.DecompressionBombError:
        raise BadInput(_too_large(name, most_pixels)) from None
    except Exception as error:  # Pillow's decoders raise whatever a broken file makes them stumble over
        raise BadInput(f"{name} is not a readable picture: its header is broken") from error
    with image:
        if image.width * image.height > most_pixels:
            raise BadInput(_too_large(name, most_pixels))
        try:
            return read_image(image, size)
        except BadInput as error:
            raise BadInput(f"{name}: {error}") from error


def _too_large(name: str, most_pixels: int) -> str:
    return f"{name} has more than {most_pixels:,} pixels: make it smaller first"


def thumbnail(pixels: Pixels) -> bytes:
    """A small WebP of what the learner saw."""
    small = Image.fromarray(pixels).resize((_THUMBNAIL, _THUMBNAIL), Image.Resampling.BICUBIC)
    data = io.BytesIO()
    small.save(data, "WEBP", quality=50)
    return data.getvalue()


def _printable(name: str | None) -> str:
    """A file's name as text in a sentence, never as a path."""
    text = "".join(character for character in name or "" if character.isprintable())
    return text[:_LONGEST_NAME] or "without a name"
