"""Decoding in bounded memory: limits before anything is decoded, one large image at a time, conversion in bands.

An image is decoded once, in Pillow's own layout. It is turned upright, blended with white and converted to RGB band by
band while it is resized, so that no second copy of it is made. The result is the same, bit for bit, as that of the
steps on the whole image, except for JPEGs of more than 25 megapixels: these are decoded at a half, a quarter or an
eighth of their size.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import Lock

import numpy as np
from PIL import ExifTags, Image
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile

from siesta.errors import BadInput

__all__ = ["MAX_BYTES", "MAX_PIXELS", "REMEDY", "DecodedImage", "check_limits", "decoded", "decoding_bytes", "is_large"]

MAX_PIXELS = 100_000_000
"""Images with more pixels are refused."""
MAX_BYTES = 400_000_000
"""Images that take more memory to decode are refused: `MAX_PIXELS` in RGB."""
REMEDY = "convert it to JPEG or PNG, or remove it"

_LARGE_BYTES = 100_000_000  # of images that take more, one at a time is decoded
_REDUCE_ABOVE = 25_000_000  # pixels of a JPEG
_BAND_PIXELS = 1_000_000
_DEFAULT_BYTES = 20  # of memory for each pixel besides the decoded image, where a format's decoder was not measured
_DECODER_BYTES = {"AVIF": 20, "GIF": 2, "PNG": 0, "TIFF": 4, "WEBP": 12}
_FORMATS_WITH_TILES = ("GIF", "JPEG", "MPO", "PNG", "TIFF")  # whose tiles are listed until the image is decoded
_COEFFICIENT_BYTES = 2
_START_OF_SCAN = 0xDA
# Orientation in EXIF -> the transposition that undoes it, whether the rows of the upright image are columns of the
# stored one, and whether they begin at its end.
_ORIENTATIONS: dict[object, tuple[Image.Transpose | None, bool, bool]] = {
    2: (Image.Transpose.FLIP_LEFT_RIGHT, False, False),
    3: (Image.Transpose.ROTATE_180, False, True),
    4: (Image.Transpose.FLIP_TOP_BOTTOM, False, True),
    5: (Image.Transpose.TRANSPOSE, True, False),
    6: (Image.Transpose.ROTATE_270, True, False),
    7: (Image.Transpose.TRANSVERSE, True, True),
    8: (Image.Transpose.ROTATE_90, True, True),
}
_large_image = Lock()


class DecodedImage:
    """An image that is decoded, but neither upright nor RGB yet; `resize` returns it upright and in RGB.

    Attributes:
        width: Width of the file's image when it is upright.
        height: Its height.
    """

    def __init__(self, image: Image.Image, name: str, factor: int, full_size: tuple[int, int]) -> None:
        """Take a loaded image.

        Args:
            image: The image, loaded.
            name: What error messages call it.
            factor: Factor by which it was reduced when it was decoded.
            full_size: Its size in the file, before the reduction.
        """
        self._image = image
        self._name = name
        orientation = image.getexif().get(ExifTags.Base.Orientation)
        self._method, self._swapped, self._from_end = _ORIENTATIONS.get(orientation, (None, False, False))
        stored = image.size if factor == 1 else full_size  # a TIFF is turned upright when it is loaded
        self.width, self.height = stored[::-1] if self._swapped else stored

    def resize(self, width: int, height: int, columns: tuple[int, int] | None = None) -> Image.Image:
        """Return the upright image in RGB, resized to (width, height), bicubic; of the result, only some columns.

        Pillow resizes rows first and then columns, and rounds between; a band of rows therefore gives what the same
        rows of the whole image would give.
        """
        left, right = columns or (0, width)
        stored_width, stored_height = self._image.size[::-1] if self._swapped else self._image.size
        step = max(_BAND_PIXELS // max(stored_width, 1), 1)
        rows = Image.new("RGB", (right - left, stored_height))
        with _readable(self._name):
            for top in range(0, stored_height, step):
                band = self._rgb_band(top, min(top + step, stored_height))
                band = band.resize((width, band.height), Image.Resampling.BICUBIC)
                rows.paste(band.crop((left, 0, right, band.height)), (0, top))
        return rows.resize((right - left, height), Image.Resampling.BICUBIC)

    def _rgb_band(self, top: int, bottom: int) -> Image.Image:
        """Return rows of the upright image in RGB."""
        width, height = self._image.size
        if self._from_end:
            length = width if self._swapped else height
            top, bottom = length - bottom, length - top
        band = self._image.crop((top, 0, bottom, height) if self._swapped else (0, top, width, bottom))
        if self._method is not None:
            band = band.transpose(self._method)
        return _to_rgb(band)


@contextmanager
def decoded(image: Image.Image, name: str, side: int | None = None) -> Iterator[DecodedImage]:
    """Decode an image; of large ones, one at a time in a process.

    Args:
        image: An image, decoded or not.
        name: What error messages call it.
        side: Least length of its sides that is needed, which allows to decode a large JPEG at a reduced size. Give it
            only for an image that has no other user: it has the reduced size afterwards.
    """
    check_limits(image, name, side)
    full_size = image.size
    factor = _reduction(image, side)
    with _large_image if is_large(image, side) else nullcontext():
        with _readable(name):
            if factor > 1:
                image.draft(None, (image.width // factor, image.height // factor))
            image.load()
            picture = DecodedImage(image, name, factor, full_size)
        yield picture


def check_limits(image: Image.Image, name: str, side: int | None = None, max_pixels: int = MAX_PIXELS) -> None:
    """Raise `BadInput` if an image has too many pixels, or takes too much memory to decode; see `decoded`."""
    if image.width * image.height > max_pixels:  # the size is known before anything is decoded
        raise BadInput(f"{name} has more than {max_pixels:,} pixels: make it smaller first")
    needed = decoding_bytes(image, side)
    if needed > MAX_BYTES:
        raise BadInput(
            f"{name} with its {image.width} x {image.height} pixels takes {needed / 1e6:,.0f} MB of memory to decode, "
            f"more than {MAX_BYTES / 1e6:,.0f} MB: make it smaller, or convert it to JPEG or PNG"
        )


def is_large(image: Image.Image, side: int | None = None) -> bool:
    """Return whether an image takes so much memory to decode that one at a time is decoded in a process."""
    return decoding_bytes(image, side) > _LARGE_BYTES


def decoding_bytes(image: Image.Image, side: int | None = None) -> int:
    """Return about how much memory an image takes to decode, from its header.

    Args:
        image: An image; what is decoded already is counted as it is stored.
        side: As for `decoded`.
    """
    pixels = image.width * image.height
    stored = pixels * _stored_bytes(image.mode)
    if not isinstance(image, ImageFile) or (not image.tile and image.format in _FORMATS_WITH_TILES):
        return stored  # it is decoded already
    if isinstance(image, JpegImageFile):
        return stored // _reduction(image, side) ** 2 + _coefficient_bytes(image)
    uncompressed = bool(image.tile) and image.tile[0][0] == "raw"
    return stored + pixels * _DECODER_BYTES.get(image.format or "", 0 if uncompressed else _DEFAULT_BYTES)


def _stored_bytes(mode: str) -> int:
    """Return the bytes of a pixel in Pillow's memory."""
    if mode in ("1", "L", "P"):
        return 1
    return 2 if mode.startswith("I;16") else 4


def _reduction(image: Image.Image, side: int | None) -> int:
    """Return the factor by which the decoder reduces a JPEG; twice the needed pixels remain for the resize."""
    if side is None or not isinstance(image, JpegImageFile) or image.width * image.height <= _REDUCE_ABOVE:
        return 1
    spare = min(image.size) // (2 * side)
    return max(factor for factor in (1, 2, 4, 8) if factor <= max(spare, 1))


def _coefficient_bytes(image: JpegImageFile) -> int:
    """Return the bytes of the coefficients that the decoder of a JPEG keeps where several scans change them."""
    file = image.fp
    header = bytes([_START_OF_SCAN, 0, 6 + 2 * image.layers, image.layers])  # of one scan with all components
    if file is not None and not image.info.get("progressive"):
        position = file.tell()  # behind the header of the first scan
        file.seek(max(position - len(header) - 2 * image.layers - 3, 0))
        single_scan = file.read(len(header)) == header
        file.seek(position)
        if single_scan:
            return 0
    samples = sum(layer[1] * layer[2] for layer in image.layer)
    largest = max(layer[1] for layer in image.layer) * max(layer[2] for layer in image.layer)
    return _COEFFICIENT_BYTES * image.width * image.height * samples // max(largest, 1)


def _to_rgb(image: Image.Image) -> Image.Image:
    """Return an image as RGB, what is transparent on white."""
    if image.mode.startswith("I"):  # 16 bits per pixel
        image = Image.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))
    if image.has_transparency_data:
        picture = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    return image.convert("RGB")


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # Pillow's decoders raise all kinds of errors on a broken file
        raise BadInput(f"{name} is not a readable image: {REMEDY}") from error
