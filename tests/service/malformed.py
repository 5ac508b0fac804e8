"""Files that somebody could upload: pictures of every odd kind, and what chance and malice make of them."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator

import numpy as np
from PIL import Image

__all__ = ["bomb", "malformed", "odd_pictures"]

PNG = b"\x89PNG\r\n\x1a\n"


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    data = io.BytesIO()
    image.save(data, kind, **options)
    return data.getvalue()


def noise(*shape: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(sum(shape)).integers(0, 256, shape, dtype=np.uint8))


def odd_pictures() -> dict[str, bytes]:
    """Pictures that can be read, though few cameras make them."""
    plain, frames = noise(30, 40, 3), [noise(20, 20 + n, 3).resize((24, 24)) for n in range(5)]
    deep = Image.fromarray(np.arange(900, dtype=np.uint16).reshape(30, 30) * 70)
    found = {
        "cmyk.jpg": saved(plain.convert("CMYK"), "JPEG"),
        "gray.jpg": saved(plain.convert("L"), "JPEG"),
        "progressive.jpg": saved(plain, "JPEG", progressive=True, quality=95),
        "deep.png": saved(deep, "PNG"),
        "palette.png": saved(plain.convert("P"), "PNG", transparency=3),
        "bits.png": saved(plain.convert("1"), "PNG"),
        "alpha.png": saved(noise(20, 20, 4), "PNG"),
        "animated.png": saved(frames[0], "PNG", save_all=True, append_images=frames[1:]),
        "animated.gif": saved(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=20),
        "animated.webp": saved(frames[0], "WEBP", save_all=True, append_images=frames[1:]),
        "lossless.webp": saved(plain, "WEBP", lossless=True),
        "one.png": saved(noise(1, 1, 3), "PNG"),
        "text.png": PNG + chunk(b"IHDR", header(2, 2)) + chunk(b"tEXt", b"a\0<b>") + data(2, 2) + chunk(b"IEND", b""),
    }
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        found[f"turned{orientation}.jpg"] = saved(plain, "JPEG", exif=exif)
    return found


def header(width: int, height: int, depth: int = 8) -> bytes:
    return struct.pack(">IIBBBBB", width, height, depth, 2, 0, 0, 0)


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def data(width: int, height: int) -> bytes:
    return chunk(b"IDAT", zlib.compress(bytes(height * (1 + 3 * width))))


def bomb(width: int = 30_000, height: int = 30_000) -> bytes:
    """A PNG of a few bytes that says it has so many pixels."""
    return (
        PNG + chunk(b"IHDR", header(width, height)) + chunk(b"IDAT", zlib.compress(bytes(10**6))) + chunk(b"IEND", b"")
    )


def bad_files() -> dict[str, bytes]:
    """Files that are no pictures, or not ours, or say they are larger than they are."""
    plain = noise(20, 20, 3)
    exif = b"\xff\xe1" + struct.pack(">H", 30) + b"Exif\0\0" + b"\xff" * 22
    jpeg = saved(plain, "JPEG")
    return {
        "empty.jpg": b"",
        "zeros.png": bytes(5000),
        "page.html": b"<html><script>alert(1)</script></html>",
        "vector.svg": b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        "sheet.bmp": saved(plain, "BMP"),
        "scan.tiff": saved(plain, "TIFF"),
        "script.eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n",
        "archive.zip": b"PK\x03\x04" + bytes(100),
        "bomb.png": bomb(),
        "endless.png": bomb(2**31 - 1, 2**31 - 1),
        "thin.png": PNG + chunk(b"IHDR", header(1, 40_000)) + data(1, 40_000) + chunk(b"IEND", b""),
        "flat.png": PNG + chunk(b"IHDR", header(0, 0)) + chunk(b"IEND", b""),
        "text-bomb.png": PNG
        + chunk(b"IHDR", header(2, 2))
        + chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(50_000_000)))
        + data(2, 2)
        + chunk(b"IEND", b""),
        "profile-bomb.png": PNG
        + chunk(b"IHDR", header(2, 2))
        + chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(50_000_000)))
        + data(2, 2)
        + chunk(b"IEND", b""),
        "huge.gif": b"GIF89a" + struct.pack("<HH", 65_535, 65_535) + b"\xf0\0\0" + bytes(6) + b";",
        "huge.webp": b"RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xfe\x3f\0\xfe\x3f\0" + bytes(10),
        "odd-exif.jpg": jpeg[:2] + exif + jpeg[2:],
        "name\n\0../../etc/passwd": b"x",
        '<img src=x onerror="alert(1)">.png': b"y",
    }


def malformed(count: int) -> Iterator[tuple[str, bytes]]:
    """So many files: all of the above, then cut short, with bytes changed, doubled, swapped or put together."""
    whole = {**odd_pictures(), **bad_files()}
    yield from whole.items()
    rng = np.random.default_rng(7)
    names = [name for name, content in whole.items() if 0 < len(content) < 20_000]
    for _ in range(count - len(whole)):
        name = names[rng.integers(len(names))]
        content = bytearray(whole[name])
        for _ in range(rng.integers(1, 4)):
            place = int(rng.integers(len(content) or 1))
            kind = rng.integers(5)
            if kind == 0:
                del content[place:]
            elif kind == 1:
                content[place : place + 1] = rng.bytes(1)
            elif kind == 2:
                content[place : place + 8] = rng.bytes(int(rng.integers(1, 16)))
            elif kind == 3:
                content += whole[names[rng.integers(len(names))]][:place]
            else:
                content[:0] = whole[names[rng.integers(len(names))]][:12]
        yield name, bytes(content)
